# SPDX-License-Identifier: Apache-2.0
"""Which runs of the tests count as passed: failures at random do, once they were named, and nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import environment
from tests.verdict import Failure, Results, judge

TESTS = """
from pathlib import Path

import pytest

SEEN = Path(__file__).parent / "seen"


@pytest.fixture(autouse=True)
def _named(request):
    request.node.user_properties.append(("nodeid", request.node.nodeid))


def test_good():
    pass


def test_flaky():
    first = not SEEN.exists()
    SEEN.touch()
    assert not first, "the first time"


def test_skipped():
    pytest.skip("not here")
"""


def failures(*names: str) -> list[Failure]:
    return [Failure(name, name, f"{name} broke") for name in names]


def judged(results: Results, passing: set[str]) -> tuple[int, list[str], list[str]]:
    """The exit status, what was run again, and what was said."""
    again: list[str] = []
    said: list[str] = []

    def run_again(name: str) -> bool:
        again.append(name)
        return name in passing

    return judge(results, run_again, said.append), again, said


def test_all_passed() -> None:
    assert judged(Results(7, []), set()) == (0, [], ["7 passed, 0 failed"])


def test_up_to_three_that_pass_alone_are_flaky_and_do_not_fail_the_run() -> None:
    status, again, said = judged(Results(7, failures("a", "b", "c")), {"a", "b", "c"})
    assert (status, again) == (0, ["a", "b", "c"])
    assert said == ["flaky: a: a broke", "flaky: b: b broke", "flaky: c: c broke", "10 passed, 0 failed"]


def test_a_second_failure_fails_the_run() -> None:
    status, _, said = judged(Results(7, failures("a", "b")), {"a"})
    assert status == 1
    assert said == ["flaky: a: a broke", "failed: b: b broke", "8 passed, 1 failed"]


def test_more_than_three_are_not_run_again() -> None:
    status, again, said = judged(Results(7, failures("a", "b", "c", "d")), {"a", "b", "c", "d"})
    assert (status, again, said[-1]) == (1, [], "7 passed, 4 failed")


def test_what_has_no_name_to_run_it_by_fails_the_run() -> None:
    crashed = Failure("gw0", None, "worker 'gw0' crashed")
    assert judged(Results(7, [crashed]), set()) == (
        1,
        [],
        ["failed: gw0: worker 'gw0' crashed", "7 passed, 1 failed"],
    )


def test_a_run_without_tests_has_not_passed() -> None:
    assert judged(Results(0, []), set())[0] == 1


def verdict(directory: Path, *arguments: str) -> tuple[int, list[str]]:
    (directory / "pytest.ini").write_text("[pytest]\n")  # the root of these tests
    command = [sys.executable, "-m", "tests.verdict", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment(), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.process
def test_a_real_run_with_a_flaky_test_and_one_with_a_broken_one(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    status, lines = verdict(tmp_path, "test_some.py")
    flaky = "flaky: test_some.py::test_flaky: AssertionError: the first time"
    assert (status, lines[-2:]) == (0, [flaky, "2 passed, 0 failed"]), lines

    file.write_text(f"{TESTS}\n\ndef test_broken():\n    raise AssertionError('always')\n")
    status, lines = verdict(tmp_path, "test_some.py")
    broken = "failed: test_some.py::test_broken: AssertionError: always"
    assert (status, lines[-2:]) == (1, [broken, "2 passed, 1 failed"]), lines


@pytest.mark.process
def test_an_end_that_is_no_result_fails(tmp_path: Path) -> None:
    status, lines = verdict(tmp_path, "nothing.py")
    assert status not in (0, 1)
    assert lines[-1] == f"pytest ended with status {status}"
