# SPDX-License-Identifier: Apache-2.0
"""What is counted of the code is what is there, and a limit only sinks."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from bench import code
from tests.support.documented import Documented

pytestmark = pytest.mark.process

ROOT: Final = Path(__file__).parents[2]
PARAMETERS: Final = ", ".join(f"p{number}" for number in range(9))
PLANTED: Final = {
    "storage/disk/lock.py": "import storage.format\nclass Place:\n    pass\n",
    "storage/format/__init__.py": "",
    "storage/format/batch.py": "from storage.disk import lock\nfrom coordinator import app\n",
    "coordinator/app.py": '"""Starts and stops a node."""\nclass Place:\n    """See there."""\n\ndef run() -> None:\n'
    + "    pass\n" * 40,
    "coordinator/one.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from coordinator import two\n",
    "coordinator/two.py": "from coordinator.three import x\n",
    "coordinator/three.py": f"import coordinator.one\ndef x(self, {PARAMETERS}):\n    'What is owed now is told.'\n",
    "coordinator/four.py": "import coordinator.three\nCHANGES_AT_ONCE: int = 3\n'It is a number of changes.'\n",
    "protocol/hot/made.py": "class Place:\n    'What?'\n",
    "tests/test_app.py": 'monkeypatch.setattr("coordinator.app.run", None)\n',
}
LIMITED: Final = {
    "import cycles": 1,
    "pairs of rooms that import each other": 1,
    "class names with several meanings": 1,
    "docstrings that open with What, Whether, Those, This, It": 1,
    "notes of constants and attributes that open so": 1,
    "docstrings whose first line has under 4 words": 1,
    "words of our own, where the field has one": 2,
    "functions over 40 lines": 1,
    "functions with over 8 parameters": 1,
    "modules and folders in the fullest package": 5,
    "constants that slice work": 1,
}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    for name, text in PLANTED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def limit(root: Path, limits: Mapping[str, int]) -> None:
    (root / code.LIMITS).parent.mkdir(exist_ok=True)
    (root / code.LIMITS).write_text(json.dumps(limits))


def check(root: Path) -> str:
    """Compare with the limits, as `make lint` does; returns what was said of them."""
    command = [sys.executable, "-I", "-S", str(ROOT / "bench/code.py"), "--check", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr)
    return done.stderr


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)


def test_what_was_planted_is_counted(planted: Path) -> None:
    assert code.counts(planted) == LIMITED
    found = code.figures(planted)
    expected = {
        "storage: files, lines": "3, 5",
        "coordinator: lines of a function, median/p90/p99/max": "41/41/41/41",
        "coordinator: public names with a docstring": "66.7%",
        "file names used twice or more": "0",
        "patched attributes in tests": "1",
    }
    assert {name: found[name] for name in expected} == expected


def test_limits_that_fit_pass_without_any_package(planted: Path) -> None:
    limit(planted, LIMITED)
    assert check(planted) == ""


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_fails_where_there_is_more_or_less(planted: Path, name: str) -> None:
    limit(planted, LIMITED | {name: LIMITED[name] - 1})
    assert f"{name}: {LIMITED[name]}, and the limit is {LIMITED[name] - 1}" in check(planted)
    limit(planted, LIMITED | {name: LIMITED[name] + 1})
    assert "--lower" in check(planted)


def test_what_has_no_limit_fails(planted: Path) -> None:
    assert "import cycles: 1, and the limit is 0" in check(planted)


def test_lowered_limits_fit_and_none_rises(planted: Path) -> None:
    limit(planted, LIMITED | {"constants that slice work": 7, "functions over 40 lines": 0, "gone": 3})
    assert code.main(["--lower", str(planted)]) == 0
    assert code.read_limits(planted) == LIMITED | {"functions over 40 lines": 0}


def test_a_limit_that_was_lower_in_an_earlier_commit_fails(planted: Path) -> None:
    git(planted, "init", "-q")
    for slicing in (0, 5, 1):
        limit(planted, LIMITED | {"constants that slice work": slicing})
        git(planted, "add", "-A")
        git(planted, "commit", "-qm", "code: a limit")
    assert check(planted).endswith(
        "constants that slice work: the limit has been 0 and is 1: limits only sink\n"
    )


def test_the_places_are_listed(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code.main(["--show", "class names", str(planted)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "class names with several meanings",
        "  Place: coordinator/app.py:2 storage/disk/lock.py:2",
    ]


def test_no_two_rooms_of_the_product_import_each_other() -> None:
    rooms = code.pairs(code.read(ROOT, ["storage", "coordinator", "audit"]))
    assert rooms == []


def test_trees_stand_side_by_side(documented: Documented, planted: Path) -> None:
    (command,) = documented.commands
    shown = documented.run(command, {"OLD_CHECKOUT": planted}, cwd=ROOT).stdout
    (row,) = (line for line in shown.splitlines() if line.startswith("storage: files, lines"))
    assert "3, 5" in row


def test_the_figures_of_this_tree_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert code.main([str(ROOT)]) == 0
    assert "coordinator: files, lines" in capsys.readouterr().out
