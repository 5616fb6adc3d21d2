# SPDX-License-Identifier: Apache-2.0
"""The compiled connection answers random conversations byte for byte as its source does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled.modules import ROOT

SEEDS = ("1000", "1300")


def conversations(folder: Path) -> tuple[str, list[str]]:
    """Which file the connections came from, and what came of each conversation."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.net.conversations", *SEEDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    first, *rest = [line for line in done.stdout.splitlines() if line.startswith(("{", "["))]
    return str(json.loads(first)["connection"]), rest


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("made_from_this_tree")
def test_the_compiled_connection_says_what_its_source_says(tmp_path: Path) -> None:
    for name in ("tests", "bench"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    source, expected = conversations(ROOT)
    compiled, found = conversations(tmp_path)
    assert (Path(source).suffix, Path(compiled).suffix) == (".py", ".so")
    assert len(expected) == int(SEEDS[1]) - int(SEEDS[0])
    different = [(said, should) for said, should in zip(found, expected, strict=True) if said != should]
    assert different == []
