# SPDX-License-Identifier: Apache-2.0
"""A cluster behind a gateway, as its clients see both."""

import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.kafka.cluster import KafkaCluster
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting


class Whole(Fronting):
    """`groupkeeper serve` in front of a cluster."""

    def __init__(
        self,
        work: Path,
        cluster: KafkaCluster,
        settings: Mapping[str, str | int] | None = None,
        protocol: str = "PLAINTEXT",
    ) -> None:
        super().__init__(work, cluster.bootstrap(protocol), settings)
        self.cluster = cluster

    def start(self) -> None:
        """Start it, and return once the port of every broker is bound."""
        super().start()
        for node_id in self.cluster.brokers:
            wait_until(
                partial(self._accepts_at, self.broker_port(node_id)),
                what=lambda: f"the ports of all brokers:\n{self.log_text()[-2000:]}",
            )

    @staticmethod
    def _accepts_at(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def broker_port(self, node_id: int) -> int:
        """Where clients find a broker."""
        return self.broker_ports + node_id

    @property
    def brokers(self) -> str:
        """What clients are given to begin with: the ports of the brokers."""
        return ",".join(f"127.0.0.1:{self.broker_port(each)}" for each in self.cluster.brokers)

    @property
    def real_ports(self) -> set[int]:
        """The ports of the brokers themselves, where no client should be."""
        return {int(self.cluster.address(each).rpartition(":")[2]) for each in self.cluster.brokers}

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic in the cluster, and wait until a commit to it is taken here."""
        self.cluster.create_topic(name, partitions)
        self.commits_soon(f"{name}-probe", name, dict.fromkeys(range(partitions), 0))


def descendants(pid: int) -> set[int]:
    """A process and all that it has started, and they."""
    children = {pid}
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            children |= descendants(int(child))
    return children
