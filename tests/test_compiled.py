# SPDX-License-Identifier: Apache-2.0
"""What is installed is compiled, and does what the sources do."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

from bench.installed import ROOT, groupkeeper, is_installed
from tests.support.missing import skip_or_fail

# Tests of compiled parts. They use real parts only: a compiled function takes nothing that looks like its argument.
SUITES = (
    "tests/groups",
    "tests/protocol",
    "tests/storage/test_batch.py",
    "tests/storage/test_records.py",
)


@pytest.fixture(scope="module", autouse=True)
def made_from_this_tree() -> None:
    if not is_installed():
        skip_or_fail("the installed groupkeeper was not made from this tree: make install")


def test_every_module_that_should_be_is_compiled(tmp_path: Path) -> None:
    said = subprocess.run(
        [*groupkeeper(), "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    if not said.stdout.endswith(" (compiled)\n"):
        skip_or_fail("groupkeeper was installed without a C compiler")
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    modules = [path for pattern in hook["hooks"]["custom"]["modules"] for path in ROOT.glob(pattern)]
    assert len(modules) > 30
    where = Path(str(distribution("groupkeeper").locate_file("")))
    missing = [
        str(path.relative_to(ROOT))
        for path in modules
        if path.name != "__init__.py"
        and not list((where / path.parent.relative_to(ROOT)).glob(f"{path.stem}.*.so"))
    ]
    assert missing == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_compiled_parts_pass_the_tests_of_their_sources(tmp_path: Path) -> None:
    # Where the sources are not: so the tests find the installed modules.
    for folder in ("tests", "bench"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow and not kafka",
            "-p",
            "no:cacheprovider",
            *SUITES,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
