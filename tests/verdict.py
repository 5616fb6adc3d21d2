# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.verdict ARGS`: run `pytest ARGS`, and then say whether that counts as passed.

Reads what failed from the file that `--junitxml=FILE` names, else from one of its own.

Runs up to three failed tests once more, each in a process of its own. A test that passes then is printed as
`flaky: NAME: first failure` and is to be fixed before anything else, but does not fail the run. Everything else does: a
second failure, more than three failures, a test that cannot be run again (a process of the run died), an end of pytest
other than with passed or failed tests, or no test at all. The last line is `N passed, M failed`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

NODE_ID: Final = "nodeid"
"""The property in junit.xml that holds the name pytest runs a test by; tests/conftest.py sets it."""
RERUN_MAX: Final = 3
RERUN_LIMIT_S: Final = 600
TESTS_FAILED: Final = 1
"""pytest's exit status for a whole run with failures; a higher one says that the run was not whole."""

RunAgain = Callable[[str], bool]


class Failure(NamedTuple):
    """A test that failed: the name that pytest runs it by, None where there is none, and the first line of why."""

    name: str
    node_id: str | None
    message: str


class Results(NamedTuple):
    """What a junit.xml says."""

    passed: int
    failures: list[Failure]


def read_results(path: Path) -> Results:
    """Read a junit.xml that pytest has written. Raises OSError, ElementTree.ParseError."""
    passed: set[str] = set()
    failures: dict[str, Failure] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        node_ids = (each.get("value") for each in case.iter("property") if each.get("name") == NODE_ID)
        bad = next((each for each in case if each.tag in ("failure", "error")), None)
        if bad is not None:
            message = (bad.get("message") or "").strip().partition("\n")[0]
            failures.setdefault(name, Failure(name, next(node_ids, None), message))
        elif case.find("skipped") is None:
            passed.add(name)
    return Results(len(passed - failures.keys()), list(failures.values()))


def judge(results: Results, run_again: RunAgain, say: Callable[[str], None]) -> int:
    """Run again what failed, print what is flaky and the last line; return the exit status."""
    failed, flaky = 0, 0
    for failure in results.failures:
        name = failure.node_id or failure.name
        again = failure.node_id is not None and len(results.failures) <= RERUN_MAX
        if again and run_again(name):
            flaky += 1
            say(f"flaky: {name}: {failure.message}")
        else:
            failed += 1
            say(f"failed: {name}: {failure.message}")
    say(f"{results.passed + flaky} passed, {failed} failed")
    return 1 if failed or not results.passed else 0


def run_alone(node_id: str) -> bool:
    """Run one test in a process of its own, with its output on ours; return whether it passed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", node_id]
    try:
        return subprocess.run(command, check=False, timeout=RERUN_LIMIT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(arguments: Sequence[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--junitxml", type=Path)
    named, others = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        path = named.junitxml or Path(work) / "junit.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={path}", *others]
        status = subprocess.run(command, check=False).returncode
        if status not in (0, TESTS_FAILED):
            say(f"pytest ended with status {status}")
            return status
        return judge(read_results(path), run_alone, say)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
