# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation`: fresh seeds for `--seconds`, one `--seed` again, or `--mutants`, which must be caught.

A seed that failed goes into `seeds.txt`; the suite runs all of those.
"""

import argparse
import io
import logging
import os
import random
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator

from coordinator.telemetry import logs
from tests.simulation import mutants

SIMULATED_S = 300.0
MUTANT_S = 60.0
"""How long a mutant may go uncaught."""


def run(seed: int, simulated_s: float, *, show: bool = False) -> tuple[Counter[str], Exception | None]:
    """One world; returns what happened in it and what was broken."""
    from tests.simulation.world import World  # after a mutant was loaded

    world = World(seed)
    broken = None
    try:
        world.run(simulated_s)
    except Exception as error:  # noqa: BLE001 - whatever it is, this seed shows it
        broken = error
    if show:
        sys.stdout.write("\n".join(world.events) + "\n")
    return Counter(world.history.counts), broken


def run_seeds(seeds: Iterator[int], seconds: float, simulated_s: float) -> int:
    """Run worlds until the time is over or something is broken; returns the exit status."""
    began, total, simulated = time.monotonic(), Counter[str](), 0.0
    while time.monotonic() - began < seconds:
        seed = next(seeds)
        counts, error = run(seed, simulated_s)
        simulated += simulated_s
        total += counts
        if error is not None:
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            return 1
    took = time.monotonic() - began
    sys.stdout.write(f"{simulated:.0f} simulated seconds in {took:.0f} s: {dict(total)}\n")
    return 0


def run_mutants(names: list[str]) -> int:
    """Run each mutant in a process of its own; returns 1 if one was not caught."""
    survivors = 0
    for mutant in mutants.MUTANTS:
        if names and mutant.name not in names:
            continue
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.simulation", "--mutant", mutant.name]
        done = subprocess.run(
            [*command, "--seconds", str(MUTANT_S)], capture_output=True, text=True, check=False
        )
        caught = done.returncode == 1 and done.stdout.startswith("seed ")
        survivors += not caught
        how = (done.stdout + done.stderr[-2_000:]).strip().splitlines()
        sys.stdout.write(
            f"{'caught' if caught else 'SURVIVED'} after {time.monotonic() - began:4.0f} s: {mutant.name}"
            f"  [{how[0][:150] if how else ''}]\n"
        )
        sys.stdout.flush()
    return 1 if survivors else 0


def main() -> int:
    """Run what was asked for; returns the exit status: 1 if anything was broken, or a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seconds", type=float, default=60, help="how long to try fresh seeds")
    parser.add_argument("--seed", type=int, help="run this seed only, and show what happened")
    parser.add_argument(
        "--simulated", type=float, default=SIMULATED_S, help="simulated seconds for each seed"
    )
    parser.add_argument("--log", action="store_true", help="with --seed: show the node's log as well")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="run all mutants, or these")
    parser.add_argument("--mutant", metavar="NAME", help="run seeds 1, 2, ... with this bug in the code")
    options = parser.parse_args()
    if options.mutants is not None:
        return run_mutants(options.mutants)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is part of what a seed decides.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], environment)
    if options.log:
        logs.configure("json", "debug", sys.stdout)
    else:
        logs.configure("json", "error", io.StringIO())
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    if options.mutant:
        mutants.load(options.mutant)
        return run_seeds(iter(range(1, 1 << 32)), options.seconds, options.simulated)
    if options.seed is None:
        chance = random.SystemRandom()
        fresh = iter(lambda: chance.randrange(1 << 32), None)
        return run_seeds(fresh, options.seconds, options.simulated)
    counts, error = run(options.seed, options.simulated, show=True)
    sys.stdout.write(f"{dict(counts)}\n")
    if error is not None:
        traceback.print_exception(error)
    return 1 if error is not None else 0


if __name__ == "__main__":
    sys.exit(main())
