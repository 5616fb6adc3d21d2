# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.explore`: fresh examples, orders and seeds where the suite has fixed ones.

The quick tests, simulated nodes, planted bugs that must be found from a seed that nobody chose, and the crashes and
chaos of real processes. All of it runs, whatever fails, and a failure prints what repeats it. A finding becomes a fixed
case of the suite: a seed in tests/simulation/seeds.txt, or a test.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

SEEDED: Final[Mapping[str, str]] = {
    "GROUPKEEPER_CRASH_SEED": "tests/crash/test_sigkill.py",
    "GROUPKEEPER_CHAOS_SEED": "tests/workers/test_chaos.py",
    "GROUPKEEPER_FLIP_SEED": "tests/workers/test_flipping.py",
}
"""The tests that take a seed from the environment."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the module says; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="explore", description="Look for what the tests do not know yet.")
    parser.add_argument("--seconds", type=float, default=600, help="processor time for simulated nodes")
    options = parser.parse_args(arguments)
    chance = random.SystemRandom()
    python = [sys.executable, "-m"]
    quick = [*python, "pytest", "-n", "auto", "--dist", "loadfile", "-p", "randomly", "-m", "quick"]
    failed = not _runs(quick, {"HYPOTHESIS_PROFILE": "explore"})
    failed |= not _runs([*python, "tests.simulation", "--seconds", str(options.seconds)])
    failed |= not _runs([*python, "tests.simulation", "--gateway", "--seconds", str(options.seconds)])
    first = str(chance.randrange(1 << 31))
    failed |= not _runs([*python, "tests.simulation", "--mutants", "--first-seed", first])
    for variable, path in SEEDED.items():
        chosen = {variable: str(chance.randrange(1 << 32)), "FLIPS": "500"}
        failed |= not _runs([*python, "pytest", path], chosen)
    return 1 if failed else 0


def _runs(command: list[str], more: Mapping[str, str] | None = None) -> bool:
    """Run it, and show it with its variables, so that it can be repeated; return whether it ended with 0."""
    added = dict(more or {})
    shown = " ".join([*(f"{name}={value}" for name, value in added.items()), *command])
    sys.stdout.write(f"exploring: {shown}\n")
    sys.stdout.flush()
    if subprocess.run(command, env={**os.environ, **added}, check=False).returncode == 0:
        return True
    sys.stdout.write(f"failed: {shown}\n")
    return False


if __name__ == "__main__":
    sys.exit(main())
