# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper serve` in front of a real Kafka cluster, as a service of tests."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.ports import BROKERS, free_port_run
from tests.support.processes import ServerProcess
from tests.support.raw import RawConnection, standalone_commit
from tests.support.service import Service
from tests.support.waiting import wait_until

SERVING = '"logger":"supervisor","event":"serving"'


def wait_until_all_serve(gateway: ServerProcess) -> None:
    """Return once all processes of a service in front of a cluster serve; fail with its log if it ends before."""
    wait_until(
        lambda: gateway.exit_status is not None or SERVING in gateway.log_tail(),
        60,
        what=lambda: f"the gateway to serve:\n{gateway.log_tail()}",
    )
    gateway.assert_running()


class Fronting(Service):
    """One node with its gateways; the cluster is named by its bootstrap addresses."""

    def __init__(self, work: Path, upstream: str, settings: Mapping[str, str | int] | None = None) -> None:
        self.broker_ports = free_port_run(10, BROKERS)
        ours: dict[str, str | int] = {
            "upstream.bootstrap.servers": upstream,
            "upstream.metadata.refresh.ms": 500,
            "gateway.port.base": self.broker_ports,
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.num.partitions": 5,
            "log.level": "debug",
        }
        super().__init__(work, ours | dict(settings or {}))

    def start(self) -> None:
        """Start it, and return once all of its processes serve, the gateways too, which come last."""
        starts = self.log_text().count(SERVING)
        super().start()
        wait_until(
            lambda: self.log_text().count(SERVING) > starts,
            what=lambda: f"all processes:\n{self.log_text()[-3000:]}",
        )

    def ready(self, process: int = 0) -> dict[str, Any]:
        """What /ready of a process says, whether it is ready or not; empty while nothing answers there.

        The first process is the first worker's; gateways come behind all workers.
        """
        url = f"http://127.0.0.1:{self.metrics_port + process}/ready"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                said = answer.read()
        except urllib.error.HTTPError as refused:
            said = refused.read()
        except OSError:
            return {}
        found: dict[str, Any] = json.loads(said)
        return found

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """Commit as a standalone consumer; the error of each partition."""
        with RawConnection(self.bootstrap) as connection:
            answer = connection.call(standalone_commit(group, topic, offsets), 8)
        return {part.partition_index: part.error_code for part in answer.topics[0].partitions}

    def commits_soon(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit again and again until all of it is taken."""
        wait_until(
            lambda: set(self.commit(group, topic, offsets).values()) == {0},
            what=lambda: f"a commit to {topic}: {self.log_text()[-3000:]}",
        )
