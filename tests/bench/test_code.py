# SPDX-License-Identifier: Apache-2.0
"""What is counted of the code is what is there."""

from pathlib import Path

import pytest

from bench import code

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


def planted(root: Path) -> Path:
    files = {
        "storage/disk/lock.py": "import storage.format\nclass Place:\n    pass\n",
        "storage/format/__init__.py": "",
        "storage/format/batch.py": "from storage.disk import lock\nfrom coordinator import app\n",
        "coordinator/app.py": 'class Place:\n    """See there."""\n\ndef run() -> None:\n'
        + "    pass\n" * 40,
        "tests/test_app.py": 'monkeypatch.setattr("coordinator.app.run", None)\n',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_what_was_planted_is_counted(tmp_path: Path) -> None:
    found = code.figures(planted(tmp_path))
    expected = {
        "storage: files, lines": "3, 5",
        "coordinator: lines of a function, median/p90/p99/max": "41/41/41/41",
        "coordinator: public names with a docstring": "50.0%",
        "pairs of rooms that import each other": "1",
        "functions over 40 lines": "1",
        "names of classes that stand for several": "1",
        "docstrings that begin 'The same' or 'See'": "1",
        "patched attributes in tests": "1",
    }
    assert {name: found[name] for name in expected} == expected


def test_no_two_rooms_of_the_product_import_each_other() -> None:
    rooms = code.pairs(code.read(ROOT, ["storage", "coordinator", "audit"]))
    assert rooms == []


def test_the_figures_of_this_tree_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert code.main([str(ROOT)]) == 0
    assert "coordinator: files, lines" in capsys.readouterr().out
