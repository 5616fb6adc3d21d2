# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation`: fresh seeds for `--seconds`, one `--seed` again, or `--mutants`, which must be caught.

README.md says how to read a failure. A seed that failed goes into `seeds.txt`; the suite runs all of those.
"""

import argparse
import gc
import io
import json
import logging
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coordinator.telemetry import logs
from tests.simulation.history import Broken
from tests.simulation.mutants import MUTANTS
from tests.simulation.planting import Mutant, load

if TYPE_CHECKING:
    from tests.simulation.world import World

SIMULATED_S = 300.0
MUTANT_WORLDS = 120
"""In so many, one after the other, a mutant must be caught: counted, as the time depends on the machine."""
SIMULATION = Path(__file__).parent
SIMULATION_FAILED = 3
LAST_EVENTS = 12
"""So many are shown of a seed that failed among fresh ones."""


class Ran(NamedTuple):
    """One world: what happened in it, and what was broken."""

    counts: Counter[str]
    events: list[str]
    broken: Exception | None


def run(
    seed: int, simulated_s: float, *, gateway: bool, trace: bool = False, keep: Path | None = None
) -> Ran:
    """Run one world; `keep` is a directory for its disk as a stop leaves it, and for what is in its log."""
    world = _new_world(seed, gateway=gateway, trace=trace)
    broken = None
    try:
        world.run(simulated_s, stop=keep is not None)
    except Exception as error:  # noqa: BLE001 - whatever it is, this seed shows it
        broken = error
    gc.unfreeze()  # a node that was loaded freezes what it finds, which is all worlds of this process
    gc.collect()
    if keep is not None:
        world.disk.copy_to(keep)
        (keep / "ledger.json").write_text(json.dumps(world.ledger.facts()))
    return Ran(Counter(world.history.counts), world.events, broken)


def _new_world(seed: int, *, gateway: bool, trace: bool) -> "World":
    if gateway:  # imported after a mutant was loaded
        from tests.simulation.gateway.world import GatewayWorld

        return GatewayWorld(seed, tracing=trace)
    from tests.simulation.world import World

    return World(seed, tracing=trace)


def run_seeds(seeds: Iterable[int], simulated_s: float, *, gateway: bool) -> int:
    """Run a world of each seed, or until something is broken; returns the exit status."""
    began, total, simulated = time.process_time(), Counter[str](), 0.0
    for seed in seeds:
        ran = run(seed, simulated_s, gateway=gateway)
        simulated += simulated_s
        total += ran.counts
        if ran.broken is not None:
            which = " GATEWAY=1" if gateway else ""
            again = f"make simulate{which} SEED={seed} SIMULATED={simulated_s:.0f} TRACE=1"
            say(f"seed {seed}: {type(ran.broken).__name__}: {ran.broken}")
            say(*ran.events[-LAST_EVENTS:], f"step by step: {again}")
            return _status(ran.broken)
    took = time.process_time() - began
    say(f"{simulated:.0f} simulated seconds in {took:.0f} s, {simulated / took:.0f} a second: {dict(total)}")
    return 0


def fresh_seeds(seconds: float) -> Iterator[int]:
    """Seeds by chance, for so much processor time."""
    chance, began = random.SystemRandom(), time.process_time()
    while time.process_time() - began < seconds:
        yield chance.randrange(1 << 32)


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def run_mutants(chosen: Iterable[Mutant], first_seed: int | None) -> int:
    """Run each mutant in a process of its own, from `first_seed` or its own seed on; returns 1 if one survives."""
    survivors = 0
    for mutant in chosen:
        began = _processor_s()
        command = [sys.executable, "-m", "tests.simulation", "--mutant", mutant.name]
        done = subprocess.run(
            [*command, "--first-seed", str(mutant.seed if first_seed is None else first_seed)],
            capture_output=True,
            text=True,
            check=False,
        )
        caught = done.returncode == 1 and done.stdout.startswith("seed ")
        survivors += not caught
        how = (done.stdout + done.stderr[-2_000:]).strip().splitlines()
        say(
            f"{'caught' if caught else 'SURVIVED'} after {_processor_s() - began:4.0f} s: {mutant.name}"
            f"  [{how[0][:150] if how else ''}]"
        )
    return 1 if survivors else 0


def _processor_s() -> float:
    """Processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _mutant(name: str) -> Mutant:
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    raise argparse.ArgumentTypeError(f"no such mutant: {name}")


def main() -> int:
    """Run what was asked for; returns the exit status: 1 if anything was broken, or a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument(
        "--seconds", type=float, default=60, help="how much processor time to spend on fresh seeds"
    )
    parser.add_argument("--seed", type=int, help="run this seed only, and show what happened")
    parser.add_argument(
        "--simulated", type=float, default=SIMULATED_S, help="simulated seconds for each seed"
    )
    parser.add_argument(
        "--gateway", action="store_true", help="worlds in which a gateway stands before a model of a cluster"
    )
    parser.add_argument("--log", action="store_true", help="with --seed: show the nodes' logs as well")
    parser.add_argument(
        "--trace", action="store_true", help="with --seed: show every request, answer and disk operation"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="with --seed: write the disk there at the end"
    )
    parser.add_argument(
        "--mutants", nargs="*", type=_mutant, metavar="NAME", help="run all mutants, or these"
    )
    parser.add_argument(
        "--mutant",
        type=_mutant,
        metavar="NAME",
        help="run seeds one after the other with this bug in the code",
    )
    parser.add_argument("--first-seed", type=int, help="with mutants: begin with this one")
    parser.add_argument(
        "--worlds", type=int, default=MUTANT_WORLDS, help="with --mutant: how many seeds to run"
    )
    options = parser.parse_args()
    if options.mutants is not None:
        return run_mutants(options.mutants or MUTANTS, options.first_seed)
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
        load(options.mutant)
        first = options.first_seed or 1
        seeds = range(first, first + options.worlds)
        return run_seeds(seeds, options.simulated, gateway=options.mutant.is_of_gateway)
    if options.seed is None:
        return run_seeds(fresh_seeds(options.seconds), options.simulated, gateway=options.gateway)
    return show_seed(options)


def show_seed(options: argparse.Namespace) -> int:
    """Run one seed, and show all that happened; returns the exit status."""
    ran = run(
        options.seed, options.simulated, gateway=options.gateway, trace=options.trace, keep=options.keep
    )
    say(*ran.events, str(dict(ran.counts)))
    if ran.broken is not None:
        traceback.print_exception(ran.broken)
        say(f"seed {options.seed}: {type(ran.broken).__name__}: {ran.broken}")
    return 0 if ran.broken is None else _status(ran.broken)


def _status(broken: Exception) -> int:
    """1 where a rule is broken, or the service itself has failed; 3 where it is the simulation that failed."""
    first: BaseException = broken
    while first.__cause__ is not None:
        first = first.__cause__
    raised_in = Path(traceback.extract_tb(first.__traceback__)[-1].filename)
    return SIMULATION_FAILED if SIMULATION in raised_in.parents and not isinstance(broken, Broken) else 1


if __name__ == "__main__":
    sys.exit(main())
