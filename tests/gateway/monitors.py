# SPDX-License-Identifier: Apache-2.0
"""Monitors that ask a cluster for its groups, as processes: kminion in its mode `adminApi`, and kafka_exporter.

Neither is in a package registry: KMINION_SOURCE and KAFKA_EXPORTER_SOURCE name checkouts that they are built from.
"""

import http.client
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.ports import free_ports
from tests.peers import kminion
from tests.peers.fetching import built_from_checkout
from tests.support.processes import ServerProcess
from tests.support.waiting import wait_until

KMINION_CONFIG: Final = """\
kafka:
  brokers: ["{bootstrap}"]
minion:
  consumerGroups:
    enabled: true
    scrapeMode: adminApi
    granularity: partition
exporter:
  host: 127.0.0.1
  port: {port}
"""
KMINION_LAG: Final = "kminion_kafka_consumer_group_topic_partition_lag"
EXPORTED_OFFSET: Final = "kafka_consumergroup_current_offset"
EXPORTED_LAG: Final = "kafka_consumergroup_lag"

Values = Mapping[str, Mapping[int, int]]
"""By group and partition."""


class Monitor:
    """One that runs; each look at its metrics makes it ask the cluster."""

    def __init__(self, process: ServerProcess, port: int, names: Mapping[str, str]) -> None:
        self._process = process
        self._port = port
        self._names = names

    def lags(self, topic: str) -> Values | None:
        """The lags that it shows now; None while nothing answers."""
        return self._shown("lag", topic)

    def offsets(self, topic: str) -> Values | None:
        """The committed offsets that it shows now; None while nothing answers, or where it does not show them."""
        return self._shown("offset", topic)

    def _shown(self, what: str, topic: str) -> Values | None:
        self._process.assert_running()
        text = self._metrics()
        if text is None or what not in self._names:
            return None
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = sample.labels
                if sample.name == self._names[what] and labels[self._names["topic"]] == topic:
                    partition = int(labels[self._names["partition"]])
                    found[labels[self._names["group"]]][partition] = int(sample.value)
        return dict(found)

    def _metrics(self) -> str | None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return text if answer.status == http.HTTPStatus.OK else None

    def log_tail(self) -> str:
        """The end of what it has said."""
        return self._process.log_tail(5)

    def until_answering(self) -> None:
        """Return once its metrics can be read."""
        wait_until(lambda: self._metrics() is not None, what=lambda: f"its metrics:\n{self.log_tail()}")


@contextmanager
def _running(command: list[str], work: Path, port: int, names: Mapping[str, str]) -> Iterator[Monitor]:
    process = ServerProcess(command, work / "monitor.log", env=os.environ)
    try:
        monitor = Monitor(process, port, names)
        monitor.until_answering()
        yield monitor
    finally:
        process.kill9()


@contextmanager
def watching_kminion(work: Path, bootstrap: str) -> Iterator[Monitor]:
    """kminion, which shows lags. Raises UnavailableError."""
    _, binary = kminion.built()
    (port,) = free_ports(1)
    config = work / "kminion.yaml"
    config.write_text(KMINION_CONFIG.format(bootstrap=bootstrap, port=port))
    names = {"group": "group_id", "topic": "topic_name", "partition": "partition_id", "lag": KMINION_LAG}
    command = ["env", f"CONFIG_FILEPATH={config}", str(binary)]
    with _running(command, work, port, names) as monitor:
        yield monitor


@contextmanager
def watching_kafka_exporter(work: Path, bootstrap: str) -> Iterator[Monitor]:
    """kafka_exporter. Raises UnavailableError."""
    _, binary = built_from_checkout(
        "kafka_exporter", "KAFKA_EXPORTER_SOURCE", "github.com/danielqsj/kafka_exporter"
    )
    (port,) = free_ports(1)
    command = [str(binary), f"--web.listen-address=127.0.0.1:{port}", f"--kafka.server={bootstrap}"]
    names = {"group": "consumergroup", "topic": "topic", "partition": "partition"}
    names |= {"lag": EXPORTED_LAG, "offset": EXPORTED_OFFSET}
    with _running(command, work, port, names) as monitor:
        yield monitor


MONITORS: Final = {"kminion": watching_kminion, "kafka_exporter": watching_kafka_exporter}
