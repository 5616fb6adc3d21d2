# SPDX-License-Identifier: Apache-2.0
"""A real Kafka to measure beside: one node of broker and controller, and more brokers of its cluster."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.cluster import Address
from bench.maven import Missing, locate_jars
from bench.ports import HOST, free_ports
from bench.servers import REPOSITORY, NotStarted, Server

KAFKA_VERSION: Final = "4.4.0"
POM: Final = REPOSITORY / "tests" / "kafka" / "pom.xml"  # names the jars for the tests and for us
CLUSTER_ID: Final = "R3JvdXBrZWVwZXJCZW5jaA"
# What bin/kafka-server-start.sh gives the JVM.
JVM: Final = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class KafkaUnavailable(Exception):
    """No Kafka can run here; the message says what is missing."""


def kafka_classpath() -> str:
    """A class path with Kafka and its tools.

    The jars come from the directory that KAFKA_LIBS names, or from the user's cache, which Maven fills the
    first time. Raises KafkaUnavailable.
    """
    found = locate_jars(f"kafka-{KAFKA_VERSION}", POM, os.environ.get("KAFKA_LIBS"))
    if isinstance(found, Missing):
        raise KafkaUnavailable(found.reason)
    return f"{found}/*"


class Kafka(Server):
    """A broker as Kafka's own start script runs one, without an initial rebalance delay."""

    def __init__(
        self,
        name: str,
        work: Path,
        settings: Mapping[str, str] | None = None,
        also: Mapping[Address, Address] | None = None,
        *,
        node_id: int = 1,
        controller: Address | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        """`also` are further addresses where it listens, each with what it tells clients that have come there.

        With the `controller` of node 1 it is one more broker of that cluster. `jvm` are further options of Java.
        Raises KafkaUnavailable.
        """
        super().__init__(name, work)
        self._also = dict(also or {})
        self._classpath = kafka_classpath()
        self._node_id = node_id
        self._joins = controller is not None
        self.controller = controller or Address(HOST, free_ports(1)[0])
        self._jvm = jvm
        self._settings = dict(settings or {})
        self._properties = work / "server.properties"

    def command(self) -> list[str]:
        """`kafka.Kafka` with the written configuration."""
        return ["java", *JVM, *self._jvm, QUIET, "-cp", self._classpath, "kafka.Kafka", str(self._properties)]

    def format(self) -> None:
        """Write the configuration and format the data directory, as KRaft wants it before the first start."""
        self._properties.write_text(
            "".join(f"{key}={value}\n" for key, value in self._configuration().items())
        )
        tool = ["java", QUIET, "-cp", self._classpath, "kafka.tools.StorageTool", "format"]
        command = [*tool, "-t", CLUSTER_ID, "-c", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotStarted(f"formatting Kafka's data failed:\n{done.stdout}{done.stderr}")

    def _configuration(self) -> dict[str, str]:
        told = {"PLAINTEXT": (self.address, self.address)}
        told |= {f"ALSO{number}": pair for number, pair in enumerate(self._also.items())}
        listeners = [f"{name}://{here}" for name, (here, _) in told.items()]
        if not self._joins:
            listeners.append(f"CONTROLLER://{self.controller}")
        advertised = [f"{name}://{there}" for name, (_, there) in told.items()]
        return {
            "process.roles": "broker" if self._joins else "broker,controller",
            "node.id": str(self._node_id),
            "controller.quorum.voters": f"1@{self.controller}",
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in (*told, "CONTROLLER")),
            "log.dirs": str(self.data),
            "offsets.topic.num.partitions": "50",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }
