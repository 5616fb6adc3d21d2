# SPDX-License-Identifier: Apache-2.0
"""What should be compiled is."""

import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from bench.installed import groupkeeper
from tests.compiled.modules import ROOT, compiled_modules, named
from tests.support.missing import skip_or_fail


def test_every_named_module_is_there_and_no_module_of_groups_is_forgotten() -> None:
    for pattern in named():
        assert list(ROOT.glob(pattern.removeprefix("!"))), f"pyproject.toml names {pattern}, which is nothing"
    groups = {path.name for path in (ROOT / "coordinator/groups").glob("*.py")}
    compiled = {path.name for path in compiled_modules() if path.parent.name == "groups"}
    assert groups - compiled == {"__init__.py", "state.py"}


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
