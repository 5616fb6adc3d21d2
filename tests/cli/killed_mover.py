# SPDX-License-Identifier: Apache-2.0
"""Moves groups as the command does, and gets a signal at one of its questions: python -m tests.cli.killed_mover.

Arguments: adopt or give-back; the number of the question, or its name, for the first of that name; whether the signal
comes `before` or `after` that had its effect; the signal, SIGKILL or SIGSTOP; the data directory; the servers of the
cluster; and the groups, none for all. Where it goes on it prints what it did, as the command does with --json.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from coordinator.cli.moving.moves import GroupMoveRequest, adopt_requested_groups, give_back_requested_groups
from coordinator.cli.moving.private_nodes_client import PrivateNodes
from coordinator.cli.moving.results import GroupMoveResult, print_results
from coordinator.cli.options import parse_addresses
from coordinator.migration.protocol import AdoptionTarget, ClusterCoordinator, LocalCoordinator
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.groups import UpstreamGroups
from protocol.newtypes import GroupId

QUESTIONS = {
    name
    for port in (AdoptionTarget, LocalCoordinator, ClusterCoordinator)
    for name in vars(port)
    if not name.startswith("_") and name != "wait_for_open_transactions"
}


class Asked:
    """A port that counts the questions, and sends the process a signal at one of them."""

    left = 0
    name: str | None = None
    before = True
    signal = signal.SIGKILL

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._signalling(name, method) if name in QUESTIONS else method

    def _signalling(self, name: str, method: Any) -> Any:
        async def ask(*arguments: Any, **more: Any) -> Any:
            Asked.left -= Asked.name in (None, name)
            is_it = Asked.left == 0 and Asked.name in (None, name)
            if is_it and Asked.before:
                os.kill(os.getpid(), Asked.signal)
            answer = await method(*arguments, **more)
            if is_it and not Asked.before:
                os.kill(os.getpid(), Asked.signal)
            return answer

        return ask


async def main(
    command: str, question: str, when: str, what: str, data_dir: str, servers: str, *groups: str
) -> None:
    """Move everything, or as much as can be before the end."""
    is_number = question.isdigit()
    Asked.left, Asked.name = (int(question), None) if is_number else (1, question)
    Asked.before, Asked.signal = when == "before", signal.Signals[what]
    cluster = UpstreamCluster(UpstreamConfig(tuple(parse_addresses(servers))), read=Path.read_bytes)
    await cluster.connect()
    work: Any = adopt_requested_groups if command == "adopt" else give_back_requested_groups
    move = GroupMoveRequest([GroupId(group) for group in groups] or None, dry_run=False)
    done: list[GroupMoveResult] = []
    with PrivateNodes(Path(data_dir), 30.0) as here:
        await work(Asked(here), Asked(UpstreamGroups(cluster)), move, done)
    await cluster.close()
    print_results(done, json=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
