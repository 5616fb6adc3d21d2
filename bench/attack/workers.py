# SPDX-License-Identifier: Apache-2.0
"""Does a supervisor kill workers that work? `python -m bench.attack.workers [--tree DIR] [--python FILE]`.

Two workers. Each gets requests of 2 MB, one after the other: FindCoordinator with two million empty names, which a
node refuses or takes seconds to answer. Beside them a client at each node commits all the time. One line tells how many
workers were killed, how many requests were answered, and how long the clients spent in commits of more than a second.
"""

import argparse
import json
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.attack.background import Background
from bench.attack.frames import raw, request
from bench.attack.node import connect, read_frame
from bench.cluster import Address
from bench.ports import HOST
from bench.servers import REPOSITORY, Groupkeeper
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, Offset
from protocol.wire import pack_uvarint

WORKERS: Final = 2
NAMES: Final = 2_000_000
SLOW_S: Final = 1.0
READY_TIMEOUT_S: Final = 60.0
LAUNCH: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from coordinator.cli.main import main; main()"
)


class Supervised(Groupkeeper):
    """A supervisor and its workers, of any tree."""

    def __init__(self, work: Path, python: str, tree: Path) -> None:
        super().__init__("attacked", work, {"workers": str(WORKERS), "log.format": "console"})
        self._python = python
        self._tree = tree

    def command(self) -> list[str]:
        """`groupkeeper serve …` of the tree, by the interpreter that was chosen."""
        usual = super().command()
        return [self._python, "-P", "-c", LAUNCH, str(self._tree), *usual[usual.index("serve") :]]

    def addresses(self) -> list[Address]:
        """Where the workers listen."""
        return [Address(HOST, self.address.port + index) for index in range(WORKERS)]

    def killed(self) -> int:
        """How many workers the supervisor has killed."""
        pids = re.findall(r"killing a worker.*?pid=(\d+)", self._log.read_text(errors="replace"))
        return len(set(pids))


class Client(Background):
    """Commits for one group at one node, and what it waited for answers in all; refusals are answers, too."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address = address
        self.commits = 0
        self.slow_s = 0.0

    def run(self) -> None:
        """Commit until the end, over ever new connections where that is needed."""
        row = hot.OffsetCommitRequestPartition(0, Offset(1))
        topics = [hot.OffsetCommitRequestTopic(name="none", partitions=[row])]
        commit = request(
            ApiKey.OFFSET_COMMIT, 7, hot.OffsetCommitRequest(group_id=GroupId("g"), topics=topics)
        )
        while not self.over.is_set():
            began = time.monotonic()
            try:
                with connect(self._address) as sock:
                    while not self.over.is_set():
                        began = time.monotonic()
                        sock.sendall(commit)
                        read_frame(sock)
                        self.commits += 1
                        self._count(began)
                        self.over.wait(0.01)
            except OSError:
                self.over.wait(0.1)
                self._count(began)

    def _count(self, began: float) -> None:
        took = time.monotonic() - began
        self.slow_s += took if took > SLOW_S else 0


def attack(address: Address, large: bytes, times: int, answered: list[int]) -> None:
    """Send the large request so often to one node."""
    for _ in range(times):
        try:
            with socket.create_connection(address, timeout=120) as sock:
                sock.sendall(large)
                answered.append(len(read_frame(sock)))
        except OSError:
            time.sleep(1)


def play(python: str, tree: Path, requests: int) -> dict[str, object]:
    """The whole attack; returns what it did."""
    body = b"\0" + pack_uvarint(NAMES + 1) + b"\1" * NAMES + b"\0"
    large = raw(ApiKey.FIND_COORDINATOR, 4, body)
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as work,
        Supervised(Path(work) / "w", python, tree) as server,
    ):
        server.start()
        wait_for(server.addresses())
        clients = [Client(address) for address in server.addresses()]
        answered: list[int] = []
        each = requests // WORKERS
        attackers = [
            threading.Thread(target=attack, args=(address, large, each, answered), daemon=True)
            for address in server.addresses()
        ]
        began = time.monotonic()
        for thread in (*clients, *attackers):
            thread.start()
        for thread in attackers:
            thread.join()
        for client in clients:
            client.stop()
        return {
            "requests": each * WORKERS,
            "bytes_each": len(large),
            "seconds": round(time.monotonic() - began, 1),
            "answered": len(answered),
            "workers_killed": server.killed(),
            "commits": sum(client.commits for client in clients),
            "seconds_in_slow_commits": round(sum(client.slow_s for client in clients), 1),
        }


def wait_for(addresses: Sequence[Address]) -> None:
    """Return once all nodes accept connections. Raises TimeoutError."""
    ends = time.monotonic() + READY_TIMEOUT_S
    for address in addresses:
        while True:
            try:
                socket.create_connection(address, timeout=1).close()
                break
            except OSError:
                if time.monotonic() > ends:
                    raise TimeoutError(f"{address} does not listen") from None
                time.sleep(0.05)


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.attack.workers", description=__doc__)
    parser.add_argument("--requests", type=int, default=24, metavar="N", help="large ones (%(default)s)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the nodes' interpreter")
    parser.add_argument("--tree", type=Path, default=REPOSITORY, metavar="DIR", help="where the sources are")
    options = parser.parse_args(arguments)
    print(json.dumps(play(options.python, options.tree.resolve(), options.requests)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
