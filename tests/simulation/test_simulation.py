# SPDX-License-Identifier: Apache-2.0
"""Whole nodes in simulation: seeds that failed once, some fixed ones, and that it finds planted bugs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.history import NOTHING, Broken, History
from tests.simulation.loop import Endless, SimulatedLoop, Spinning
from tests.simulation.mutants import MUTANTS
from tests.simulation.planting import Mutant, path_of
from tests.simulation.processes import simulate

SEEDS = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
GATED = 3
"""So many seeds of a gateway are in the gate."""
KEY = ("group", "topic", 0)


def _with_mark(seed: int) -> Any:
    """`make test` runs those that found something once, and the first two; `make explore` tries fresh ones."""
    return pytest.param(seed, marks=pytest.mark.gate if seed in (*SEEDS, 1, 2) else pytest.mark.slow)


@pytest.mark.process
@pytest.mark.parametrize("seed", [_with_mark(seed) for seed in [*SEEDS, *range(1, 13)]])
def test_a_seed(seed: int) -> None:
    done = simulate("--seed", seed, "--simulated", 120)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


def _of_gateway(seed: int) -> Any:
    return pytest.param(seed, marks=pytest.mark.gate if seed <= GATED else pytest.mark.slow)


@pytest.mark.process
@pytest.mark.parametrize("seed", [_of_gateway(seed) for seed in range(1, 9)])
def test_a_seed_of_a_gateway(seed: int) -> None:
    done = simulate("--gateway", "--seed", seed, "--simulated", 120)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


@pytest.mark.process
def test_a_seed_decides_everything_of_a_gateway() -> None:
    asked = ("--gateway", "--seed", 2, "--simulated", 60, "--trace")
    once, again = (simulate(*asked).stdout for _ in range(2))
    assert once == again
    assert "OFFSET_COMMIT" in once


@pytest.mark.process
@pytest.mark.parametrize(("seed", "process"), [(3, "node/1"), (2, "worker-3")])
def test_a_seed_decides_everything(seed: int, process: str) -> None:
    once, again = (simulate("--seed", seed, "--simulated", 60, "--trace").stdout for _ in range(2))
    assert once == again
    assert process in once
    assert "asks" in once
    assert "disk: pwrite" in once


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    compile(mutant.source(), str(path_of(mutant.module)), "exec")


@pytest.mark.process
def test_what_is_no_mutant_is_refused() -> None:
    done = simulate("--mutants", "a typo")
    assert (done.returncode, "a typo" in done.stderr) == (2, True), done.stderr


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_mutant_is_caught_by_its_seed(mutant: Mutant) -> None:
    """Where it is not: `make simulate MUTANTS=1` finds another seed, or shows that a rule has gone."""
    done = simulate("--mutant", mutant.name, "--first-seed", mutant.seed, "--worlds", 1)
    assert done.stdout.startswith(f"seed {mutant.seed}: "), done.stdout + done.stderr
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mutants_are_caught() -> None:
    done = simulate("--mutants", "a reply leaves before its flush", "any member's assignment is taken")
    assert done.returncode == 0, done.stdout + done.stderr


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_read_of_what_was_replaced_is_noticed() -> None:
    clock = Clock()
    history = History(clock)
    for value in (1, 2):
        write = history.begin(KEY, value)
        clock.now += 1
        history.acknowledged(KEY, write)
        clock.now += 1
    began, clock.now = clock.now, clock.now + 1
    history.fetched({KEY: 2}, began)
    with pytest.raises(Broken, match="offset 1 was read after 2 had replaced it"):
        history.fetched({KEY: 1}, began)


def test_a_lost_commit_is_noticed_and_an_unanswered_one_may_come_late() -> None:
    clock = Clock()
    history = History(clock)
    history.begin(KEY, 1)  # never answered
    clock.now = 1
    history.fetched({KEY: NOTHING}, 0.5)
    clock.now = 2
    write = history.begin(KEY, 2)
    clock.now = 3
    history.acknowledged(KEY, write)
    clock.now = 5
    history.fetched({KEY: 1}, 4)
    with pytest.raises(Broken, match="nothing is committed"):
        history.fetched({KEY: NOTHING}, 4)


def test_waiting_takes_no_time_but_the_simulated() -> None:
    loop = SimulatedLoop()
    try:
        loop.run_until_complete(asyncio.sleep(86_400))
        assert loop.time() >= 86_400
    finally:
        loop.close()


def test_what_never_gives_way_is_broken_off() -> None:
    loop = SimulatedLoop()
    spun: list[bool] = []

    async def spin() -> None:
        while True:
            pass

    try:
        with loop.watched(lambda: spun.append(True), spin_s=0.05), pytest.raises(Spinning):
            loop.run_until_complete(spin())
        assert spun == [True]
    finally:
        loop.close()


def test_a_loop_in_which_no_time_passes_ends() -> None:
    loop = SimulatedLoop()

    async def turn() -> None:
        while True:  # noqa: ASYNC110 - it is what is to be broken off
            await asyncio.sleep(0)

    try:
        with pytest.raises(Endless):
            loop.run_until_complete(turn())
    finally:
        loop.close()
