# SPDX-License-Identifier: Apache-2.0
"""`python -m bench instructions`: how many instructions a request costs the compiled server, and bytes a group.

Time says little on a machine that does something else, too; valgrind's callgrind counts instructions, and counts the
same within a per cent each time. The figures that are kept in `instructions.json` hold for one build of Python each,
whose interpreter is part of what is counted.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.cluster import Unprepared
from bench.installed import is_installed

SCENARIOS: Final = ("heartbeat", "commit", "fetch", "commit_many", "fetch_many", "join", "commit_crowd")
"""As counted.py runs them; `join` is a join and a sync, the two with many are of a hundred partitions.

`commit_crowd` is a commit of one of many connections that commit in the same turn."""

WEIGHED: Final = "group_bytes"
"""How much memory a new group takes that has one member and one offset."""

FIGURES: Final = Path(__file__).with_name("instructions.json")
COUNTED: Final = Path(__file__).with_name("counted.py")
MARK: Final = "getsid"
"""The function of libc whose calls separate what is counted."""
MORE_MAX: Final = 0.04
"""By which share a request may cost more than is kept."""

GOOD: Final = 0
MORE: Final = 1

Counts = Mapping[str, int]


def main(arguments: Sequence[str]) -> int:
    """Count, print, and compare with what is kept; returns the exit status. Raises Unprepared."""
    parser = argparse.ArgumentParser(
        prog="python -m bench instructions",
        description="Count the instructions of a heartbeat, a commit, a fetch of offsets and a rejoin, "
        "and of a commit and a fetch of a hundred partitions, from the bytes "
        "of the request to those of the answer, and the bytes of memory that a group of one member takes; "
        f"compare with bench/{FIGURES.name}.",
        epilog=f"Exit status: 0 good, {MORE} a request costs over {MORE_MAX:.0%} more than is kept, 3 no valgrind, "
        "or groupkeeper is not installed from this tree, compiled.",
    )
    parser.add_argument(
        "--write", action="store_true", help="keep what was counted, for this build of Python"
    )
    options = parser.parse_args(arguments)
    counts = count()
    kept = kept_figures()
    if options.write:
        FIGURES.write_text(json.dumps({**kept, this_python(): counts}, indent=1, sort_keys=True) + "\n")
    before = kept.get(this_python())
    if before is None:
        print(f"nothing is kept for {this_python()}: --write does that")
    for name, instructions in counts.items():
        print(line(name, instructions, None if before is None else before.get(name)))
    return MORE if before is not None and too_many(counts, before) and not options.write else GOOD


def line(name: str, instructions: int, before: int | None) -> str:
    """One line of the output."""
    if before is None:
        return f"{name:12} {instructions:9,}"
    return f"{name:12} {instructions:9,}  {before:9,} kept  {instructions / before - 1:+7.1%}"


def too_many(counts: Counts, before: Counts) -> list[str]:
    """The scenarios that cost more than they may."""
    return [
        name
        for name, instructions in counts.items()
        if instructions > before.get(name, instructions) * (1 + MORE_MAX)
    ]


def this_python() -> str:
    """The build of Python that runs this."""
    return f"{platform.python_version()} {platform.python_compiler()} {platform.machine()}"


def kept_figures() -> dict[str, dict[str, int]]:
    """Instructions by scenario, by build of Python."""
    figures: dict[str, dict[str, int]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return figures


def count() -> dict[str, int]:
    """Instructions by scenario, without what the loop's turns cost, and `WEIGHED`. Raises Unprepared."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise Unprepared("valgrind is not installed")
    if not is_installed():
        raise Unprepared("the installed groupkeeper was not made from this tree: make install")
    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "out"
        flags = ["--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [valgrind, *flags, sys.executable, "-s", "-P", str(COUNTED)],
            cwd=work,
            # The same hashes each time, so the same collisions.
            env={"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": work, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unprepared(f"counting failed:\n{done.stderr[-4000:]}")
        said, weighed = map(json.loads, done.stdout.splitlines())
        return {**_per_round(said, out), **weighed}


def _per_round(said: Mapping[str, object], out: Path) -> dict[str, int]:
    """From what was counted between marks: 1 before the first, 2 for turns, then each second one for a scenario."""
    if not str(said["connection"]).endswith(".so"):
        raise Unprepared("groupkeeper was installed without a C compiler")
    rounds = int(str(said["rounds"]))
    turns = _total(out.with_suffix(".2"))
    return {
        name: round((_total(out.with_suffix(f".{2 * number}")) - turns) / rounds)
        for number, name in enumerate(SCENARIOS, 2)
    }


def _total(dump: Path) -> int:
    for text in reversed(dump.read_text().splitlines()):
        if text.startswith("totals:"):
            return int(text.removeprefix("totals:"))
    raise Unprepared(f"{dump.name}: not what callgrind writes")
