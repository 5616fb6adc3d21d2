# SPDX-License-Identifier: Apache-2.0
"""Compiled modules do what their sources do: the quick tests of both pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled.modules import ROOT

SUITES = (
    "tests/api",
    "tests/gateway",
    "tests/groups",
    "tests/log_contract",
    "tests/net",
    "tests/offsets",
    "tests/partitions",
    "tests/protocol",
    "tests/regressions",
    "tests/storage/test_batch.py",
    "tests/storage/test_columns.py",
    "tests/storage/test_loader.py",
    "tests/storage/test_old_messages.py",
    "tests/storage/test_one_owner.py",
    "tests/storage/test_placement.py",
    "tests/storage/test_records.py",
    "tests/storage/test_transactions.py",
)
"""Those of compiled modules, and of what goes through many of them."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("made_from_this_tree")
def test_what_is_installed_passes_the_quick_tests_of_its_sources(tmp_path: Path) -> None:
    """From a copy of the tests, where the sources are not; with few examples, as the sources have had many."""
    for name in ("tests", "bench", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "quick", "-p", "no:cacheprovider", *SUITES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "", "HYPOTHESIS_PROFILE": "gate"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
