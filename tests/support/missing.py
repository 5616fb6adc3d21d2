# SPDX-License-Identifier: Apache-2.0
"""What a test needs and a newcomer's machine may not have."""

import os
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test with the reason; in CI, where everything must be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"must not be skipped in CI: {reason}", pytrace=False)
    pytest.skip(reason)
