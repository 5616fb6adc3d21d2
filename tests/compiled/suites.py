# SPDX-License-Identifier: Apache-2.0
"""Runs tests on what is installed, which is compiled, instead of on the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.compiled.modules import ROOT

PARTS: Final = (
    "tests/groups",
    "tests/protocol",
    "tests/storage/test_batch.py",
    "tests/storage/test_columns.py",
    "tests/storage/test_loader.py",
    "tests/storage/test_old_messages.py",
    "tests/storage/test_one_owner.py",
    "tests/storage/test_placement.py",
    "tests/storage/test_records.py",
    "tests/storage/test_transactions.py",
)
"""The parts that are compiled, one by one."""

WHOLE: Final = (
    "tests/api",
    "tests/log_contract",
    "tests/net",
    "tests/offsets",
    "tests/partitions",
    "tests/regressions",
)
"""What goes through many of them."""


def run_on_the_installed(suites: tuple[str, ...], folder: Path) -> None:
    """Assert that the quick tests of these suites pass, run from a copy in `folder`, where the sources are not."""
    for name in ("tests", "bench"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not kafka", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *suites],
        cwd=folder,
        # How hard hypothesis tries: the sources have had their many examples.
        env={**os.environ, "PYTHONPATH": "", "HYPOTHESIS_PROFILE": "dev"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
