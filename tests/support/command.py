# SPDX-License-Identifier: Apache-2.0
"""The command, as somebody runs it who types it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import REPOSITORY, environment

_COMMAND = (sys.executable, "-m", "coordinator.cli.main")
"""`groupkeeper`, also where it is not installed."""


def groupkeeper(
    *arguments: object, cwd: Path = REPOSITORY, extra: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `groupkeeper` until it ends by itself, with `extra` in its environment."""
    return subprocess.run(
        [*_COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment(extra),
        timeout=100,
    )
