# SPDX-License-Identifier: Apache-2.0
"""Building from the tree and from an sdist, with and without a C compiler.

The builds are isolated ones, as pip does them: they see only what `build-system.requires` names. A C compiler that
makes empty files stands in for the real one, whose two minutes other tests spend.
"""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from bench.installed import PACKAGES, ROOT
from hatch_build import chosen_modules
from tests.support.missing import require_compiler

pytestmark = pytest.mark.process

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOOK = (ROOT / "hatch_build.py").read_text()
COMPILER = """#!/bin/sh
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then : >"$2"; fi
    shift
done
"""
SLOWER = "groupkeeper is not compiled, so it works but is slower: "
NO_COMPILER = "there is no C compiler that works, or no headers of this Python"
IN_CI = ("CI", "REQUIRE_COMPILED")


def build(tree: Path, out: Path, *flags: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Build the tree; neither CI's environment nor the caller's compiler counts."""
    ours = {name: value for name, value in os.environ.items() if name not in (*IN_CI, "CC", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), *flags, str(tree)],
        env={**ours, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def libraries(wheel: Path) -> set[str]:
    """The compiled modules in a wheel, as the sources they were made of."""
    names = zipfile.ZipFile(wheel).namelist()
    return {
        re.sub(r"\.cpython-.*\.so$", ".py", name)
        for name in names
        if name.endswith(".so") and "__mypyc" not in name
    }


def to_compile() -> set[str]:
    patterns = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["modules"]
    return set(chosen_modules(ROOT, patterns))


def test_the_build_asks_for_what_the_locks_pin() -> None:
    """One requirement must not be written in two ways."""
    known = {*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]}
    assert set(PROJECT["build-system"]["requires"]) <= known
    assert set(PROJECT["dependency-groups"]["build"]) <= set(PROJECT["build-system"]["requires"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_isolated_build_of_the_sdist_compiles_all_that_the_tree_would(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    # Without flags: an sdist of the tree first, then a wheel of what that holds.
    done = build(ROOT, tmp_path / "dist", CC=str(compiler), REQUIRE_COMPILED="1")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (sdist,), (wheel,) = (tmp_path / "dist").glob("*.tar.gz"), (tmp_path / "dist").glob("*.whl")
    assert sdist.stat().st_size > 100_000
    assert libraries(wheel) == to_compile()
    sources = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert sources <= set(names)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    held = {name.split("/")[0] for name in names if ".dist-info/" not in name and "__mypyc" not in name}
    assert held == set(PACKAGES)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project with our hook and one module to compile."""
    tree = tmp_path / "small"
    tree.mkdir()
    (tree / "hatch_build.py").write_text(HOOK)
    (tree / "only.py").write_text("def double(number: int) -> int:\n    return number * 2\n")
    (tree / "pyproject.toml").write_text("""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "small"
version = "1"
requires-python = ">=3.11"
[tool.hatch.build.targets.wheel]
only-include = ["only.py"]
[tool.hatch.build.targets.wheel.hooks.custom]
modules = ["only.py"]
""")
    return tree


def built(small: Path, **environment: str) -> tuple[str, list[str]]:
    """What a build says, and the wheels that it leaves."""
    out = small.parent / "out"
    done = build(small, out, "--wheel", "--no-isolation", **environment)
    wheels = [path.name for path in out.glob("*")]
    assert (done.returncode == 0) == bool(wheels)
    return done.stdout + done.stderr, wheels


def test_with_a_compiler_the_wheel_is_for_this_platform(small: Path) -> None:
    require_compiler()
    said, (wheel,) = built(small, REQUIRE_COMPILED="1")
    assert "not compiled" not in said
    assert "none-any" not in wheel
    assert libraries(small.parent / "out" / wheel) == {"only.py"}


@pytest.mark.parametrize(
    "environment", [{"CC": "/bin/false"}, {"CC": "/nonexistent/cc"}, {"PATH": "/nonexistent"}]
)
def test_without_a_compiler_the_wheel_holds_the_sources(small: Path, environment: dict[str, str]) -> None:
    said, wheels = built(small, **environment)
    assert wheels == ["small-1-py3-none-any.whl"]
    assert said.count(f"{SLOWER}{NO_COMPILER}\n") == 1
    assert zipfile.ZipFile(small.parent / "out" / wheels[0]).namelist()[0] == "only.py"


def test_sources_that_mypyc_refuses_are_taken_as_they_are(small: Path) -> None:
    (small / "only.py").write_text("def double(number: int) -> str:\n    return number * 2\n")
    said, wheels = built(small)
    assert wheels == ["small-1-py3-none-any.whl"]
    assert "Incompatible return value type" in said
    assert said.count(f"{SLOWER}mypyc does not take the sources; what it says is above this line\n") == 1


def test_a_compiler_that_fails_at_last_leaves_no_half_of_it(small: Path) -> None:
    """It compiles what is tried first, and not mypyc's own code."""
    compiler = small.parent / "cc"
    compiler.write_text(COMPILER.replace("while", 'case "$*" in *probe*) ;; *) exit 1 ;; esac\nwhile', 1))
    compiler.chmod(0o755)
    said, wheels = built(small, CC=str(compiler))
    assert wheels == ["small-1-py3-none-any.whl"]
    assert f"{SLOWER}the C compiler failed; what it says is above this line\n" in said


@pytest.mark.parametrize("asked", IN_CI)
def test_who_asks_for_compiled_code_gets_that_or_nothing(small: Path, asked: str) -> None:
    said, wheels = built(small, CC="/bin/false", **{asked: "true"})
    assert wheels == []
    assert NO_COMPILER in said
