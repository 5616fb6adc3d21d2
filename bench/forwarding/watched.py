# SPDX-License-Identifier: Apache-2.0
"""A gateway whose coordinator notes how long each turn of its event loop takes.

The coordinator runs on asyncio's own loop, as uvloop does not let anybody look at its turns; the process that forwards
runs as ever. `main` is the supervisor; it starts this module as its worker, which writes the turns when it ends.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, cast

from bench.installed import is_installed
from bench.servers import REPOSITORY
from bench.watched import TimedLoop, WatchedNode
from coordinator.config import load
from coordinator.telemetry import logs
from coordinator.workers import process_main, serve
from coordinator.workers.worker import Worker

MODULE: Final = "bench.forwarding.watched"
LAUNCH: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from {} import main; sys.exit(main(sys.argv[1:]))"
)
"""What is installed comes before the tree, if it was made from it: so it is compiled."""
FILE: Final = "BENCH_TURNS"


class WatchedGateway(WatchedNode):
    """Such a gateway as a child process."""

    module = MODULE
    """Its `main` is the supervisor."""

    def command(self) -> list[str]:
        """The supervisor, with `KEY=VALUE …`."""
        isolated = ["-I"] if is_installed() else []
        _, *chosen = super().command()[4:]
        return [
            sys.executable,
            *isolated,
            "-c",
            LAUNCH.format(self.module),
            str(REPOSITORY),
            str(self.turns_file),
            *chosen,
        ]


def main(arguments: Sequence[str]) -> int:
    """Run the supervisor until SIGTERM; returns its exit status."""
    return supervise(arguments, MODULE)


def supervise(arguments: Sequence[str], worker: str, gateway: str = serve.GATEWAY_MODULE) -> int:
    """Run `TURNS_FILE KEY=VALUE …` with processes of these modules until SIGTERM; returns its exit status."""
    os.environ[FILE] = arguments[0]
    # Its processes find what they are made of where it was found, and these modules here.
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    settings = load(None, {}, arguments[1:], {})
    logs.configure(settings.log_format, settings.log_level)
    return serve.serve(settings, lambda _: None, worker, gateway)


def run_timed(work: Coroutine[Any, Any, int], name: str = "") -> int:
    """Run a process that writes its turns to TURNS_FILE, which ends with `name`."""
    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        status = runner.run(work)
        turns = cast(TimedLoop, runner.get_loop()).turns
    Path(os.environ[FILE] + name).write_bytes(turns.tobytes())
    return status


if __name__ == "__main__":
    sys.exit(process_main.main(sys.argv[1:], Worker, run_timed))
