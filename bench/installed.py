# SPDX-License-Identifier: Apache-2.0
"""Which `groupkeeper` is started: the one that was installed, which is compiled, or the sources of this tree."""

import filecmp
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("coordinator", "protocol", "storage")


@cache
def groupkeeper() -> tuple[str, ...]:
    """The command beside this interpreter, if it was made from this very tree; else this tree's sources."""
    command = Path(sys.executable).with_name("groupkeeper")
    if command.exists() and _made_from(ROOT):
        return (str(command),)
    return (sys.executable, "-m", "coordinator.cli.main")


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
