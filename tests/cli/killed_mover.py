# SPDX-License-Identifier: Apache-2.0
"""Moves all groups as the command does, and is killed at one of its questions: python -m tests.cli.killed_mover.

Arguments: adopt or give-back, the number of the question, whether it is killed `before` or `after` that had its effect,
the data directory, and the servers of the cluster.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from coordinator.cli.moving.moves import Moving, adopt_all, give_back_all
from coordinator.cli.moving.private import PrivateNodes
from coordinator.cli.options import addresses
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.groups import UpstreamGroups

QUESTIONS = ("mark", "has", "adopt", "offsets", "give_back", "state", "committed", "commit", "remove")


class Asked:
    """A port that counts the questions, and ends the process at one of them."""

    left = 0
    before = True

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._killing(method) if name in QUESTIONS else method

    def _killing(self, method: Any) -> Any:
        async def ask(*arguments: Any, **more: Any) -> Any:
            Asked.left -= 1
            if Asked.left == 0 and Asked.before:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = await method(*arguments, **more)
            if Asked.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return ask


async def main(command: str, number: str, when: str, data_dir: str, servers: str) -> None:
    """Move everything, or as much as can be before the end."""
    Asked.left, Asked.before = int(number), when == "before"
    cluster = UpstreamCluster(UpstreamConfig(tuple(addresses(servers))), read=Path.read_bytes)
    await cluster.connect()
    work: Any = adopt_all if command == "adopt" else give_back_all
    with PrivateNodes(Path(data_dir), 30.0) as here:
        await work(Asked(here), Asked(UpstreamGroups(cluster)), Moving(None, dry_run=False), [])
    await cluster.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
