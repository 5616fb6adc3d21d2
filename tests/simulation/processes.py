# SPDX-License-Identifier: Apache-2.0
"""The simulation in a process of its own, as `make simulate` runs it."""

import subprocess
import sys

from tests.support.processes import REPOSITORY, environment


def simulate(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `python -m tests.simulation` with these arguments to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env=environment(),
    )
