# SPDX-License-Identifier: Apache-2.0
"""What should be compiled is."""

import ast
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from bench.installed import groupkeeper
from tests.compiled.modules import ROOT, compiled_modules, named
from tests.support.missing import skip_or_fail

PACKAGES = ("audit", "coordinator", "protocol", "storage")


def test_every_named_module_is_there() -> None:
    for pattern in named():
        assert list(ROOT.glob(pattern.removeprefix("!"))), f"pyproject.toml names {pattern}, which is nothing"


def test_no_module_of_a_compiled_room_is_forgotten() -> None:
    assert forgotten(named(), sources()) == []


def test_what_is_left_out_of_a_room_has_its_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for pattern in named():
        if pattern.startswith("!"):
            (line,) = [line for line in lines if f'"{pattern}"' in line]
            left_out = re.findall(r'"!', line)
            assert len(left_out) == 1, f"one a line: {line}"
            assert re.search(r"# \w", line), f"no reason: {line}"


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["groups/*.py", "!groups/state.py"], []),
        (["groups/[!s]*.py"], ["groups/[!s]*.py is a part of a room"]),
        (["groups/join.py", "groups/sync.py"], ["most of groups is compiled, and not groups/state.py"]),
        (["groups/join.py"], []),
    ],
)
def test_a_forgotten_module_is_found(patterns: list[str], found: list[str]) -> None:
    files = [Path(f"groups/{name}.py") for name in ("__init__", "join", "state", "sync")]
    assert forgotten(patterns, files) == found


def sources() -> list[Path]:
    return [file.relative_to(ROOT) for package in PACKAGES for file in (ROOT / package).rglob("*.py")]


def forgotten(patterns: list[str], files: list[Path]) -> list[str]:
    """Patterns that take a part of a room, and modules of rooms most of which is compiled and that no pattern takes.

    A module that comes later is compiled with its room, or is left out by its name.
    """
    parts = [pattern for pattern in patterns if not re.fullmatch(r"!?[\w/]+/(\*|\w+)\.py", pattern)]
    rooms = {str(Path(pattern).parent) for pattern in patterns if pattern.endswith("/*.py")}
    found = [f"{pattern} is a part of a room" for pattern in parts]
    for room in sorted(
        {str(Path(pattern).parent) for pattern in patterns if not pattern.startswith("!")} - rooms
    ):
        modules = [str(file) for file in files if str(file.parent) == room and file.name != "__init__.py"]
        left = sorted(set(modules) - set(patterns))
        if not parts and left and len(left) * 2 < len(modules):
            found.append(f"most of {room} is compiled, and not {', '.join(left)}")
    return found


def test_no_compiled_struct_has_a_default_that_is_made() -> None:
    """Compiled, `field(...)` is no object of the attribute's type, and an object as default is refused.

    mypyc drops what a class statement says beside its bases, so that a Struct is not frozen by that.
    """
    found = [
        f"{path.relative_to(ROOT)}:{line.lineno}"
        for path in compiled_modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any("Struct" in ast.unparse(base) for base in node.bases)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call)
    ]
    assert found == []


@pytest.mark.gate
@pytest.mark.process
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
        if not list((where / path.parent.relative_to(ROOT)).glob(f"{path.stem}.*.so"))
    ]
    assert missing == []


CONFIGURATIONS = """
import importlib, sys
for module in sys.argv[1:]:
    for name, value in sorted(vars(importlib.import_module(module)).items()):
        config = getattr(value, "__struct_config__", None)
        if config is not None and value.__module__ == module and not config.gc:
            print(module, name, config.frozen)
"""


@pytest.mark.gate
@pytest.mark.process
@pytest.mark.usefixtures("made_from_this_tree")
def test_compiled_structs_are_what_their_source_says(tmp_path: Path) -> None:
    """Those without garbage collection: what is said beside a base is dropped, what a base passes on is not."""
    modules = [str(path.relative_to(ROOT).with_suffix("")).replace("/", ".") for path in compiled_modules()]
    installed, sources = (
        subprocess.run(
            [sys.executable, *isolated, "-c", CONFIGURATIONS, *modules],
            capture_output=True,
            text=True,
            check=True,
            cwd=where,
        ).stdout
        for isolated, where in ((["-I"], tmp_path), ([], ROOT))
    )
    assert installed == sources
    assert "storage.format.group_record MemberValue True" in sources
    assert "storage.format.batch_format Batch True" in sources
