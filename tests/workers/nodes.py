# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper serve` with several workers, as processes that tests kill, stop and move partitions between."""

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.installed import groupkeeper
from bench.ports import free_port_run
from coordinator.cli.errors import CommandError
from coordinator.cli.supervisor_client import send_order_to_supervisor
from coordinator.workers.operator_orders import Answer, Drain, ListPartitions, Move
from protocol.newtypes import GroupId, Partition
from protocol.placement import partition_for
from tests.support import raw
from tests.support.overview import fetch_overview
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120.0
PARTITIONS = 10


class Nodes:
    """One supervisor and its workers; the data directory survives restarts."""

    def __init__(self, work: Path, workers: int, settings: Mapping[str, str | int] | None = None) -> None:
        """Choose ports; `start` runs the processes. `workers` may be changed between two starts."""
        work.mkdir(parents=True, exist_ok=True)
        self.workers = workers
        self.port = free_port_run(16)
        self.data_dir = work / "d"
        self.log = work / "log"
        self.settings: dict[str, str | int] = {
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.num.partitions": PARTITIONS,
            **(settings or {}),
        }
        self._process: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        """All nodes, for clients."""
        return ",".join(self.address(node) for node in range(1, self.workers + 1))

    def address(self, node: int) -> str:
        """Where a node listens."""
        return f"127.0.0.1:{self.port + node - 1}"

    def launch(self) -> None:
        """Start and return at once."""
        assert self._process is None, "running already"
        command = [*groupkeeper(), "serve", "--listen", self.address(1)]
        command += ["--metrics", f"127.0.0.1:{self.port + 8}", "--data-dir", str(self.data_dir)]
        for key, value in {**self.settings, "workers": self.workers}.items():
            command += ["--set", f"{key}={value}"]
        self._process = ServerProcess(command, self.log)

    def start(self) -> None:
        """Start, and return once every partition is served."""
        self.launch()
        self.wait_until_served()

    def wait_until_served(self) -> None:
        """Return once every partition is served, and every node is there."""
        wait_until(
            self._all_served, START_TIMEOUT_S, what=lambda: f"all partitions:\n{self.log_text()[-4000:]}"
        )

    def _all_served(self) -> bool:
        self._running().assert_running()
        if self.workers == 1:
            return self._single_serves()
        if not (self.data_dir / "control.sock").exists():
            return False
        try:
            found = self.look()
        except CommandError:  # the socket of one that was killed
            return False
        serving = [node for node in found.nodes if node.state == "serving"]
        return len(serving) == self.workers and all(each.state == "online" for each in found.partitions)

    def _single_serves(self) -> bool:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        for partition in range(PARTITIONS):
            raw.wait_for_coordinator(self.address(1), group_in(partition))
        return True

    def page(self, node: int) -> str:
        """The URL of a worker's page for browsers."""
        return f"http://127.0.0.1:{self.port + 8 + node - 1}/"

    def overview(self, node: int, path: str, **query: str) -> dict[str, Any]:
        """The answer of a worker's HTTP address to a question about groups."""
        return fetch_overview(self.port + 8 + node - 1, path, **query)

    # --- orders

    def look(self) -> Answer:
        """What `partitions list` shows."""
        return send_order_to_supervisor(self.data_dir, ListPartitions())

    def leader(self, partition: int) -> int:
        """The node that leads a partition now, -1 while none does."""
        return self.look().partitions[partition].leader

    def move(self, partition: int, to: int) -> None:
        """Order a move; it goes on by itself."""
        send_order_to_supervisor(self.data_dir, Move(Partition(partition), to))

    def drain(self, node: int) -> None:
        """Order a node to be drained."""
        send_order_to_supervisor(self.data_dir, Drain(node))

    def pid(self, node: int) -> int:
        """The process id of a worker."""
        (found,) = [each.pid for each in self.look().nodes if each.node == node]
        assert found is not None, f"node {node} does not run"
        return found

    def signal(self, node: int, number: signal.Signals) -> int:
        """Send a signal to a worker; returns its process id."""
        pid = self.pid(node)
        os.kill(pid, number)
        return pid

    def wait_for_replacement(self, node: int, pid: int) -> None:
        """Return once another process than `pid` is this node, and all is served."""

        def replaced() -> bool:
            (found,) = [each for each in self.look().nodes if each.node == node]
            return found.pid not in (None, pid) and found.state == "serving"

        wait_until(replaced, START_TIMEOUT_S, what=lambda: f"a new node {node}:\n{self.log_text()[-4000:]}")
        self.wait_until_served()

    # --- end

    @property
    def supervisor(self) -> int:
        """The process id of the supervisor."""
        return self._running().pid

    def kill9(self) -> None:
        """SIGKILL of the supervisor."""
        self._running().kill9()
        self._process = None

    def terminate(self) -> None:
        """SIGTERM; everything must end in good order and leave nothing to recover."""
        process = self._running()
        self._process = None
        status = process.terminate(60)
        assert status == 0, f"exit status {status}:\n{process.log_tail()}"
        left = sorted(path.name for path in self.data_dir.iterdir() if path.name.startswith("journal"))
        assert left == [], f"{left}:\n{process.log_tail()}"
        assert (self.data_dir / ".kafka_cleanshutdown").exists()
        assert not (self.data_dir / "control.sock").exists()

    def close(self) -> None:
        """End whatever still runs."""
        if self._process is not None:
            self.kill9()

    def log_text(self) -> str:
        """All that was printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _running(self) -> ServerProcess:
        assert self._process is not None, "not running"
        return self._process


def group_in(partition: int, number: int = 0) -> str:
    """The name of a group in this partition; another one for each `number`."""
    names = (f"group-{index}" for index in range(100_000))
    found = [
        name
        for name in (next(names) for _ in range(2000))
        if partition_for(GroupId(name), PARTITIONS) == partition
    ]
    return found[number]


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet is gone, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
