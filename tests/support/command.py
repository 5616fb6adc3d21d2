# SPDX-License-Identifier: Apache-2.0
"""The command, as somebody runs it who types it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from bench import installed
from tests.support.processes import REPOSITORY, environment


def groupkeeper(
    *arguments: object, cwd: Path = REPOSITORY, extra: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `groupkeeper` until it ends by itself, with `extra` in its environment."""
    return subprocess.run(
        [*installed.groupkeeper(), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment(extra),
        timeout=120,
    )
