# SPDX-License-Identifier: Apache-2.0
"""What is installed is compiled, and does what the sources do."""

import ast
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
    "tests/manager/test_member_ids.py",
    "tests/manager/test_scheduler.py",
    "tests/regressions/test_0005_timer_behind_a_later_one.py",
    "tests/regressions/test_0006_timer_behind_a_failing_one.py",
    "tests/storage/test_batch.py",
    "tests/storage/test_placement.py",
    "tests/storage/test_records.py",
)


@pytest.fixture(scope="module")
def made_from_this_tree() -> None:
    if not is_installed():
        skip_or_fail("the installed groupkeeper was not made from this tree: make install")


def compiled_modules() -> list[Path]:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    return [path for pattern in wheel["hooks"]["custom"]["modules"] for path in ROOT.glob(pattern)]


def test_no_attribute_is_read_where_the_compiler_takes_it_for_none() -> None:
    """An attribute that a function sets to None is None to mypy up to its end, whatever the calls between set.

    So mypyc lets it be nothing else, and the compiled function raises TypeError where the source goes on.
    """
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name} was set to None above"
        for path in compiled_modules()
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for name, line in read_after_none(function)
    ]
    assert found == []


def read_after_none(function: ast.FunctionDef) -> list[tuple[str, int]]:
    """The attributes that are read below a line that sets them to None, with where that is."""
    first: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    first.setdefault(ast.unparse(target), node.lineno)
    return [
        (ast.unparse(node), node.lineno)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and node.lineno > first.get(ast.unparse(node), node.lineno)
    ]


def test_the_scan_sees_such_a_line() -> None:
    source = "def f(self):\n    self.x = None\n    self.y = 1\n    g(self)\n    return self.x, self.y"
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert read_after_none(function) == [("self.x", 5)]


@pytest.mark.usefixtures("made_from_this_tree")
def test_every_module_that_should_be_is_compiled(tmp_path: Path) -> None:
    said = subprocess.run(
        [*groupkeeper(), "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    if not said.stdout.endswith(" (compiled)\n"):
        skip_or_fail("groupkeeper was installed without a C compiler")
    modules = compiled_modules()
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
@pytest.mark.usefixtures("made_from_this_tree")
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
