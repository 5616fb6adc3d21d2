# SPDX-License-Identifier: Apache-2.0
"""The tests of the Python clients' own suites that passed before still pass; README.md has the other peers."""

from pathlib import Path

import pytest

from tests.peers import aiokafka, kafka_python
from tests.peers.differing import BY_CHANCE, EXPLAINED
from tests.peers.fetching import NotPublishedError, UnavailableError
from tests.peers.outcome import Outcome, Report, Verdict, recorded, recorded_in
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_runs_a_peers_suite(documented: Documented) -> None:
    """And ends with status 1 if a test of kafka-python failed, or one that passed before did not."""
    (command,) = documented.commands
    ran = documented.run(command, {"tests.peers": "tests.peers kafka-python"}, status=None)
    if ran.returncode == 2:
        skip_or_fail(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_passed_before_of_aiokafka_passes(tmp_path: Path) -> None:
    try:
        report = aiokafka.run(tmp_path)
    except NotPublishedError as error:
        pytest.skip(f"aiokafka: {error}")
    except UnavailableError as error:
        skip_or_fail(f"aiokafka: {error}")

    assert (report.names(Verdict.FAILED), report.lost()) == ([], []), "\n".join(report.lines())


def test_a_lost_test_is_named(tmp_path: Path) -> None:
    Report("a", outcomes=[Outcome("one", Verdict.PASSED), Outcome("two", Verdict.PASSED)]).record(tmp_path)

    skipped = Report("a", outcomes=[Outcome("one", Verdict.SKIPPED, "why"), Outcome("two", Verdict.PASSED)])

    assert skipped.lost(tmp_path) == ["one"]
    assert Report("a", outcomes=[]).lost(tmp_path) == ["one", "two"]


def test_what_fails_by_chance_counts_as_it_does_the_second_time() -> None:
    chance, other = next(iter(BY_CHANCE)), "test::sure"
    first = [Outcome(name, Verdict.FAILED, "no records") for name in (chance, other)]
    assert kafka_python.unlucky(first) == [chance]

    passed = kafka_python.merged(first, [Outcome(chance, Verdict.PASSED)])
    failed = kafka_python.merged(first, [Outcome(chance, Verdict.FAILED, "none again")])

    assert passed == [Outcome(chance, Verdict.PASSED, "before: no records"), first[1]]
    assert failed == [Outcome(chance, Verdict.FAILED, "none again\nbefore: no records"), first[1]]


def test_what_fails_by_chance_is_in_the_suite() -> None:
    assert set(BY_CHANCE) <= recorded(recorded_in("gateway"), kafka_python.NAME)


@pytest.mark.parametrize("peer", EXPLAINED)
def test_what_passes_on_kafka_passes_through_a_gateway_or_is_explained(peer: str) -> None:
    """By what was recorded of the newest runs of both."""
    on_kafka, through_a_gateway = (recorded(recorded_in(kind), peer) for kind in ("kafka", "gateway"))

    assert on_kafka - through_a_gateway == set(EXPLAINED[peer])
    assert on_kafka
