# SPDX-License-Identifier: Apache-2.0
"""Which `groupkeeper` is started: the one that was installed, which is compiled, or the sources of this tree."""

import filecmp
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("audit", "coordinator", "protocol", "storage")

_COMMAND: Final = Path(sys.executable).with_name("groupkeeper")


@cache
def groupkeeper() -> tuple[str, ...]:
    """The command beside this interpreter, if it was made from this very tree; else this tree's sources."""
    if is_installed():
        # Isolated: PYTHONPATH may name this tree, and its sources would be found first.
        return (sys.executable, "-I", str(_COMMAND))
    return (sys.executable, "-m", "coordinator.cli.main")


def is_installed() -> bool:
    """Whether the installed command was made from this tree as it stands."""
    return _COMMAND.exists() and _made_from(ROOT)


def _made_from(tree: Path) -> bool:
    try:
        installed = distribution("groupkeeper")
    except PackageNotFoundError:
        return False
    for package in PACKAGES:
        for source in (tree / package).rglob("*.py"):
            copy = Path(str(installed.locate_file(source.relative_to(tree))))
            if not copy.is_file() or not filecmp.cmp(source, copy, shallow=False):
                return False
    return True
