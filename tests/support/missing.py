# SPDX-License-Identifier: Apache-2.0
"""What a test needs and a newcomer's machine may not have."""

import os
import shutil
import sysconfig
from pathlib import Path
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test with the reason; in CI, where everything must be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"must not be skipped in CI: {reason}", pytrace=False)
    pytest.skip(reason)


def require_compiler() -> None:
    """Skip, or in CI fail, where nothing can be compiled for this Python."""
    if shutil.which("cc") is None:
        skip_or_fail("there is no C compiler")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        skip_or_fail("there are no headers of this Python (python3-dev)")
