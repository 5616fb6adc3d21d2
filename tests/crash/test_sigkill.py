# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments under load: no acknowledged offset is lost, none goes back.

GROUPKEEPER_CRASH_SEED=N repeats the choices of an earlier run, GROUPKEEPER_CRASH_ROUNDS=N changes how many rounds.
"""

import os
import random
import socket
import sys

import pytest

from tests.crash.ledger import Key, Ledger
from tests.crash.traffic import SHARED, own_group, start_all
from tests.support import raw
from tests.support.target import Target
from tests.support.waiting import wait_until

TOPIC = "crash-topic"
CONNECTIONS = 4
GROUPS = [SHARED, *(own_group(index) for index in range(CONNECTIONS))]
# A real Kafka needs 12 s and more to come back from each.
ROUNDS = {"groupkeeper": 50, "kafka": 3}
# Interpreted, it reads its modules in some 2,000 calls, and then the log; what lies beyond is a start that has ended.
CALLS_OF_A_START = 2_500
# Segments and journal so short that rolling, write-behind and checkpoints are under way when the kill comes.
OURS = {
    "offsets.topic.segment.bytes": 32_768,
    "journal.checkpoint.bytes": 65_536,
    "journal.checkpoint.interval.ms": 100,
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_acknowledged_offset_is_lost_or_goes_back_over_many_kills(own_target: Target) -> None:
    """Every offset that a client has seen, in an answer or by reading it, is there after every restart."""
    seed = int(os.environ.get("GROUPKEEPER_CRASH_SEED") or 1)
    rounds = int(os.environ.get("GROUPKEEPER_CRASH_ROUNDS") or ROUNDS[own_target.kind])
    sys.stderr.write(f"replay with GROUPKEEPER_CRASH_SEED={seed}\n")
    rng = random.Random(seed)
    ledger = Ledger()
    raw.create_topic(own_target.bootstrap, TOPIC)
    wait_for_all(own_target)
    for number in range(rounds):
        acknowledged = ledger.acknowledged + rng.randrange(1, 400)
        run_until_killed(own_target, ledger, rng, acknowledged)
        come_back(own_target, rng)
        wrong = settle(own_target, ledger)
        assert not wrong, f"round {number}, GROUPKEEPER_CRASH_SEED={seed}:\n" + "\n".join(wrong)

    own_target.terminate()
    own_target.start()
    wait_for_all(own_target)
    assert not settle(own_target, ledger), f"after a clean stop, GROUPKEEPER_CRASH_SEED={seed}"


def run_until_killed(target: Target, ledger: Ledger, rng: random.Random, acknowledged: int) -> None:
    """Let connections work until that many answers are in, and a random moment longer; then kill the server."""
    traffic = start_all(target.bootstrap, ledger, TOPIC, rng, CONNECTIONS)

    def enough() -> bool:
        return ledger.acknowledged >= acknowledged or any(each.failure for each in traffic)

    # How often it looks decides at which moment of a commit the server is killed.
    wait_until(enough, what=f"{acknowledged} answers", interval_s=rng.uniform(0.0005, 0.02))
    target.kill9()
    for each in traffic:
        each.join(120)
        assert not each.is_alive(), f"{each} hangs on a connection to a dead server"
    failures = [each.failure for each in traffic if each.failure]
    assert not failures, failures


def come_back(target: Target, rng: random.Random) -> None:
    """Start the server again; one time in four kill it while it starts, and start it once more."""
    if target.kind == "groupkeeper":
        target.settings.update(OURS | {"log.flush": rng.choice(["always", "always", "os", "interval"])})
    if rng.random() < 0.25:
        target.launch()
        wait_until_under_way(target, rng.randrange(CALLS_OF_A_START))
        target.kill9()
    target.start()
    wait_for_all(target)


def wait_until_under_way(target: Target, calls: int) -> None:
    """Wait until a server that starts has read and written so many times, or takes clients."""
    host, port = target.bootstrap.split(":")

    def is_there() -> bool:
        with socket.socket() as probe:
            return target.reads_and_writes() >= calls or probe.connect_ex((host, int(port))) == 0

    wait_until(is_there, what=f"{calls} reads and writes of a start", interval_s=0.001)


def wait_for_all(target: Target) -> None:
    """Wait until every group of the test is served."""
    for group in GROUPS:
        raw.wait_for_coordinator(target.bootstrap, group)


def settle(target: Target, ledger: Ledger) -> list[str]:
    """Compare everything that the server holds with the ledger, which goes on from there; return what is wrong."""
    wrong = []
    for group in GROUPS:
        stored = raw.fetch_offsets(target.bootstrap, group)
        wrong += ledger.settle(group, {partition: offset for (_, partition), offset in stored.items()})
    return wrong


def test_the_ledger_finds_lost_and_resurrected_offsets() -> None:
    """The judge is judged: an offset that is certain may not be missing, older, or come from nowhere."""
    key = Key("g", 0)

    def after(*, certain: int, stored: dict[int, int]) -> list[str]:
        ledger = Ledger()
        places = [ledger.ask({key: state})[key] for state in (10, 20, None, 30)]
        ledger.acknowledge({key: places[certain]})
        return ledger.settle("g", stored)

    assert after(certain=1, stored={0: 20}) == []
    assert after(certain=1, stored={}) == []
    assert after(certain=1, stored={0: 30}) == []
    assert after(certain=1, stored={0: 10})
    assert after(certain=2, stored={0: 20})
    assert after(certain=3, stored={})
    assert after(certain=3, stored={0: 30}) == []
    assert after(certain=3, stored={0: 30, 1: 5})
