# SPDX-License-Identifier: Apache-2.0
"""Moves, kills, stopped processes and new supervisors in random order under load: no acknowledged offset goes back.

GROUPKEEPER_CHAOS_SEED=N repeats the choices of an earlier run, GROUPKEEPER_CHAOS_STEPS=N changes how many there are.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from coordinator.cli.errors import CommandError
from tests.workers.nodes import PARTITIONS, Nodes, group_in
from tests.workers.test_workers import compare, go_on, start_walkers

STEPS = int(os.environ.get("GROUPKEEPER_CHAOS_STEPS") or 12)
WORKERS = 3


@pytest.mark.slow
@pytest.mark.timeout(60 + 30 * STEPS)
def test_no_acknowledged_offset_goes_back_whatever_happens_to_whom(make_nodes: Callable[..., Nodes]) -> None:
    seed = int(os.environ.get("GROUPKEEPER_CHAOS_SEED") or 1)
    sys.stderr.write(f"replay with GROUPKEEPER_CHAOS_SEED={seed}\n")
    rng = random.Random(seed)
    nodes = make_nodes(
        WORKERS,
        worker_timeout_ms=1_000,
        journal_checkpoint_bytes=65_536,
        journal_checkpoint_interval_ms=200,
        offsets_topic_segment_bytes=16_384,
    )
    walkers = start_walkers(nodes)
    done: list[str] = []
    for _ in range(STEPS):
        step = rng.choice([move, move_and_kill, kill, stop_for_good, stop_for_a_moment, kill_supervisor])
        done.append(step.__name__)
        step(nodes, rng)
        go_on(walkers, nodes)
    for walker in walkers:
        walker.stop()
    nodes.wait_until_served()
    compare(walkers, nodes)
    nodes.terminate()
    nodes.workers = 1
    nodes.start()
    compare(walkers, nodes)
    assert {group_in(partition) for partition in range(PARTITIONS)} == {walker.group for walker in walkers}
    sys.stderr.write(f"{sum(walker.acknowledged for walker in walkers)} commits; {' '.join(done)}\n")


def move(nodes: Nodes, rng: random.Random) -> None:
    """Some partitions go somewhere else, as far as anybody can take them."""
    for _ in range(rng.randrange(1, 15)):
        with suppress(CommandError):  # nobody can lead there just now
            nodes.move(rng.randrange(PARTITIONS), rng.randrange(1, WORKERS + 1))
        let_it_act(nodes, rng.choice((0, 0, 3)))


def let_it_act(nodes: Nodes, answers: int) -> None:
    """Wait until the supervisor, which acts between two orders, has answered so many."""
    for _ in range(answers):
        nodes.look()


def a_worker(nodes: Nodes, rng: random.Random) -> int | None:
    serving = [node.pid for node in nodes.look().nodes if node.state == "serving"]
    return rng.choice(serving) if serving else None


def send(nodes: Nodes, rng: random.Random, number: signal.Signals) -> int | None:
    """Send a signal to some worker that serves."""
    pid = a_worker(nodes, rng)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return pid


def kill(nodes: Nodes, rng: random.Random) -> None:
    """One worker is killed."""
    send(nodes, rng, signal.SIGKILL)


def move_and_kill(nodes: Nodes, rng: random.Random) -> None:
    """A worker is killed in the middle of moves."""
    move(nodes, rng)
    kill(nodes, rng)
    move(nodes, rng)


def stop_for_good(nodes: Nodes, rng: random.Random) -> None:
    """A worker hangs until its supervisor ends it."""
    send(nodes, rng, signal.SIGSTOP)
    move(nodes, rng)


def stop_for_a_moment(nodes: Nodes, rng: random.Random) -> None:
    """A worker hangs, and goes on, perhaps after it was ended."""
    pid = send(nodes, rng, signal.SIGSTOP)
    let_it_act(nodes, rng.randrange(500))
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def kill_supervisor(nodes: Nodes, rng: random.Random) -> None:
    """The supervisor is killed, perhaps in the middle of moves, and another one starts."""
    if rng.random() < 0.5:
        move(nodes, rng)
    nodes.kill9()
    nodes.start()
