# SPDX-License-Identifier: Apache-2.0
"""A real Kafka that asks for rights, a gateway before it, and what they hold."""

import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from bench.attack.gateway import mix
from bench.attack.keeping import answer
from bench.attack.node import connect, read_frame
from bench.cluster import Address, Cluster, Unprepared
from bench.dialect import Topic
from bench.forwarding.ways import gateway_settings, wait_for
from bench.kafka import Kafka
from bench.ports import HOST
from bench.procstat import PROC, process_tree
from bench.servers import Groupkeeper
from bench.wire import BadReply
from coordinator.workers.serve import GATEWAY_MODULE
from coordinator.workers.subprocesses import WORKER_MODULE
from protocol.apis import ApiKey

WITH_RIGHTS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SMALL_GROUPS: Final = 1_000
PREPARE_TIMEOUT_S: Final = 120.0
METRICS_TIMEOUT_S: Final = 30.0
CLOSED: Final = "groupkeeper_gateway_connections_closed_total"


class Stage(NamedTuple):
    """A gateway that runs."""

    broker: Address
    """Where it has the broker of the cluster."""
    node: Address
    """Where it has our node."""
    metrics: Address
    gateway_pid: int
    node_pid: int

    def closed(self) -> dict[str, int]:
        """How many connections the gateway has closed, by the reason. Raises Unprepared."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=METRICS_TIMEOUT_S) as said:
                text = said.read().decode()
        except OSError as error:
            raise Unprepared(f"metrics: {error}") from error
        return {
            sample.labels["reason"]: int(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == CLOSED
        }


@contextmanager
def set_up(work: Path, unsent_bytes: int) -> Iterator[Stage]:
    """Start both. Raises Unprepared, NotStarted, KafkaUnavailable."""
    with Kafka("Kafka", work / "kafka", WITH_RIGHTS) as broker:
        broker.start()
        settings, here = gateway_settings(broker.address)
        settings["connections.unsent.max.bytes"] = str(unsent_bytes)
        with Groupkeeper("Groupkeeper", work / "groupkeeper", settings) as server:
            server.start()
            wait_for(here)
            yield Stage(
                here,
                server.address,
                Address(HOST, server.metrics.port + 1),  # behind that of the one node
                _pid_of(GATEWAY_MODULE, server.pid),
                _pid_of(WORKER_MODULE, server.pid),
            )


def _pid_of(module: str, supervisor: int) -> int:
    """The supervisor's process that runs this module. Raises Unprepared."""
    for pid in process_tree(supervisor):
        if module in (PROC / str(pid) / "cmdline").read_text().split("\0"):
            return pid
    raise Unprepared(f"no process runs {module}")


def fill(stage: Stage) -> Topic:
    """Make the topic, the large group and small ones, all through the gateway. Raises Unprepared."""
    with Cluster(stage.broker, timeout_s=PREPARE_TIMEOUT_S) as cluster:
        topic = cluster.ensure_topic(mix.TOPIC, mix.PARTITIONS)
        small = {f"small-{number}": {number: number} for number in range(SMALL_GROUPS)}
        cluster.commit_all(topic, small)
        cluster.until_good(lambda: _commit(stage.node, mix.large_commits()), "committing for the large group")
    return topic


def _commit(node: Address, frames: Sequence[bytes]) -> None:
    with connect(node) as sock:
        for frame in frames:
            sock.sendall(frame)
            told = answer(ApiKey.OFFSET_COMMIT, 8, read_frame(sock))
            codes = {part.error_code for topic in told.topics for part in topic.partitions} - {0}
            if codes:
                raise BadReply(f"OffsetCommit: {codes}", frozenset(codes))
