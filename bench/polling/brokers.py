# SPDX-License-Identifier: Apache-2.0
"""A cluster of three brokers, and how many requests each of them has had."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.cluster import Address, Unprepared
from bench.kafka import QUIET, Kafka, kafka_classpath
from bench.ports import HOST, free_ports

BROKERS: Final = 3
JMX_TIMEOUT_S: Final = 60.0
REQUESTS: Final = "kafka.network:type=RequestMetrics,name=RequestsPerSec,*"
RIGHTS: Final = "DescribeGroups v0"
"""In this version a gateway asks whether a client may describe groups."""
_COUNT: Final = re.compile(r"request=(\w+),version=(\d+):Count=(\d+)")


class CountedKafka(Kafka):
    """A broker that says over JMX what it was asked."""

    def __init__(self, work: Path, node_id: int, controller: Address | None) -> None:
        (self._jmx_port,) = free_ports(1)
        where = {"port": self._jmx_port, "rmi.port": self._jmx_port, "host": HOST}
        said = {**where, "authenticate": "false", "ssl": "false"}
        jvm = [f"-Dcom.sun.management.jmxremote.{key}={value}" for key, value in said.items()]
        jvm.append(f"-Djava.rmi.server.hostname={HOST}")
        super().__init__(f"Kafka {node_id}", work, node_id=node_id, controller=controller, jvm=jvm)

    def counts(self) -> Counter[str]:
        """How many requests it has had, by api; those of RIGHTS are counted by themselves. Raises Unprepared."""
        tool = [
            "java",
            "-XX:TieredStopAtLevel=1",
            QUIET,
            "-cp",
            kafka_classpath(),
            "org.apache.kafka.tools.JmxTool",
        ]
        url = f"service:jmx:rmi:///jndi/rmi://{HOST}:{self._jmx_port}/jmxrmi"
        asked = [
            "--object-name",
            REQUESTS,
            "--attributes",
            "Count",
            "--one-time",
            "--report-format",
            "properties",
        ]
        done = subprocess.run(
            [*tool, "--jmx-url", url, *asked],
            capture_output=True,
            text=True,
            check=False,
            timeout=JMX_TIMEOUT_S,
        )
        found: Counter[str] = Counter()
        for api, version, count in _COUNT.findall(done.stdout):
            name = f"{api} v{version}"
            found[RIGHTS if name == RIGHTS else api] += int(count)
        if done.returncode or not found:
            raise Unprepared(f"JmxTool: {done.stdout[-500:]}{done.stderr[-500:]}")
        return found


@contextmanager
def started(work: Path) -> Iterator[list[CountedKafka]]:
    """The brokers of one cluster. Raises NotStarted, KafkaUnavailable."""
    with ExitStack() as stack:
        brokers: list[CountedKafka] = []
        for node_id in range(1, BROKERS + 1):
            controller = brokers[0].controller if brokers else None
            broker = CountedKafka(work / f"kafka-{node_id}", node_id, controller)
            brokers.append(stack.enter_context(broker))
            broker.start()
        yield brokers


def counts(brokers: Sequence[CountedKafka]) -> list[Counter[str]]:
    """What each broker was asked so far. Raises Unprepared."""
    with ThreadPoolExecutor(len(brokers)) as threads:
        return list(threads.map(CountedKafka.counts, brokers))
