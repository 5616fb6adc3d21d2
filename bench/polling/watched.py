# SPDX-License-Identifier: Apache-2.0
"""A gateway whose workers and gateway process note how long each turn of their event loops takes.

`main` is the supervisor. It starts this module for each worker, and `watched_gateway` for the gateway process; each
writes its turns to a file of its own when it ends.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.forwarding.watched import WatchedGateway, run_timed, supervise
from bench.watched import Turn
from coordinator.workers import process_main
from coordinator.workers.worker import Worker

MODULE: Final = "bench.polling.watched"
GATEWAY_MODULE: Final = "bench.polling.watched_gateway"
WORKER: Final = "-worker-"
GATEWAY: Final = "-gateway-"


class WatchedAll(WatchedGateway):
    """Such a gateway as a child process."""

    module = MODULE

    def turns_of(self, kind: str) -> list[Turn]:
        """The turns of all processes of a kind, WORKER or GATEWAY, once it was stopped; a spare serves nobody yet."""
        files = self.work.glob(f"{self.turns_file.name}{kind}[0-9]*")
        names = [each.name.removeprefix(self.turns_file.name) for each in files]
        return [turn for name in names for turn in self.turns(name)]


def main(arguments: Sequence[str]) -> int:
    """Run the supervisor until SIGTERM; returns its exit status."""
    return supervise(arguments, MODULE, GATEWAY_MODULE)


if __name__ == "__main__":
    name = f"{WORKER}{sys.argv[-1]}"
    sys.exit(process_main.main(sys.argv[1:], Worker, partial(run_timed, name=name)))
