# SPDX-License-Identifier: Apache-2.0
"""A gateway as a process of its own, in front of a real Kafka cluster and a node that coordinates."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kafka.cluster import KafkaCluster
from tests.support.ports import free_port_run
from tests.support.processes import ServerProcess
from tests.support.raw import create_topic
from tests.support.service import Service
from tests.support.waiting import wait_until

OUR_ID = 1_000_001
OURS_AT = 50
"""Our node's port, from the base on."""


class ToldElsewhere(Service):
    """A node that clients find at another address than its own."""

    def __init__(self, work: Path, told: str) -> None:
        super().__init__(work, {"node.id": OUR_ID, "group.initial.rebalance.delay.ms": 0})
        self._told = told

    def command(self) -> list[str]:
        """What starts it."""
        return [*super().command(), "--advertise", self._told]


class Gatewayed:
    """A cluster behind a gateway."""

    def __init__(self, work: Path, cluster: KafkaCluster, **config: Any) -> None:
        self.cluster = cluster
        self.base = free_port_run(OURS_AT + 1)
        told = f"127.0.0.1:{self.base + OURS_AT}"
        self.coordinator = ToldElsewhere(work / "node", told)
        self._config: dict[str, Any] = {
            "host": "127.0.0.1",
            "port_base": self.base,
            "max_connections": 1000,
            "max_connections_per_ip": 1000,
            "idle_ms": 600_000,
            "request_bytes_max": 100 << 20,
            **config,
        }
        self._told = told
        self._log = work / "gateway.log"
        self._process: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        """What clients are given: the ports of the brokers."""
        return ",".join(f"127.0.0.1:{self.base + node_id}" for node_id in self.cluster.brokers)

    @property
    def pid(self) -> int:
        """The process that forwards."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    def start(self, protocol: str = "PLAINTEXT") -> None:
        """Start both processes."""
        self.coordinator.start()
        self.start_gateway(protocol)

    @property
    def real_ports(self) -> set[int]:
        """The ports of the brokers themselves, where no client should be."""
        return {int(self.cluster.address(each).rpartition(":")[2]) for each in self.cluster.brokers}

    def start_gateway(self, protocol: str = "PLAINTEXT") -> None:
        """Start the process that forwards, to this listener of the brokers."""
        said: Mapping[str, Any] = {
            "config": self._config,
            "brokers": {str(each): self.cluster.address(each, protocol) for each in self.cluster.brokers},
            "nodes": {str(OUR_ID): [self._told, self.coordinator.bootstrap]},
        }
        command = [sys.executable, "-m", "tests.gateway.gateway_main", json.dumps(said)]
        self._process = process = ServerProcess(command, self._log)

        def listens() -> bool:
            process.assert_running()
            return "listening" in process.log_tail()

        wait_until(listens, what=lambda: f"the gateway to listen:\n{process.log_tail()}")

    def kill_gateway(self) -> None:
        """SIGKILL to the process that forwards."""
        assert self._process is not None, "it is not running"
        self._process.kill9()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic in the cluster, and for the node that keeps the offsets of its groups."""
        self.cluster.create_topic(name, partitions)
        create_topic(self.coordinator.bootstrap, name, partitions)

    def log_text(self) -> str:
        """What the process that forwards has said."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End both processes."""
        if self._process is not None:
            self._process.kill9()
        self.coordinator.close()
