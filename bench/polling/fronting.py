# SPDX-License-Identifier: Apache-2.0
"""The gateway before the brokers: its processes, and what its metrics say."""

import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.cluster import Address, Unprepared
from bench.forwarding.ways import wait_for
from bench.ports import BROKERS, HOST, free_port_run
from bench.procstat import PROC, process_tree
from bench.servers import Groupkeeper

WORKERS: Final = 2
METRICS_TIMEOUT_S: Final = 30.0
REQUESTS: Final = "groupkeeper_requests_total"
ADOPTIONS: Final = "groupkeeper_gateway_adoptions_total"
GROUPS: Final = "groupkeeper_groups"


class Fronting:
    """A gateway that runs."""

    def __init__(self, server: Groupkeeper, broker: Address) -> None:
        self._server = server
        self.broker = broker
        """Where it has the first broker."""

    def pids_of(self, module: str) -> list[int]:
        """Its processes that run this module."""
        return [
            pid
            for pid in process_tree(self._server.pid)
            if module in (PROC / str(pid) / "cmdline").read_text().split("\0")
        ]

    def located(self) -> list[int]:
        """How many LocateGroups each node has had. Raises Unprepared."""
        return [int(self._sum(node, REQUESTS, api="locate_groups")) for node in range(WORKERS)]

    def taken_over(self) -> int:
        """How many groups are here, or have been taken over. Raises Unprepared."""
        here = sum(self._sum(node, GROUPS) for node in range(WORKERS))
        return int(max(here, self._sum(WORKERS, ADOPTIONS, outcome="adopted")))

    def _sum(self, process: int, name: str, **labels: str) -> float:
        address = Address(HOST, self._server.metrics.port + process)
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=METRICS_TIMEOUT_S) as said:
                text = said.read().decode()
        except OSError as error:
            raise Unprepared(f"metrics: {error}") from error
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@contextmanager
def fronting(
    kind: type[Groupkeeper], work: Path, brokers: Sequence[Address], more: Mapping[str, str] = {}
) -> Iterator[tuple[Groupkeeper, Fronting]]:
    """A gateway of two workers and one process that forwards, before brokers with the ids 1 and so on.

    Raises NotStarted and Unprepared.
    """
    first = free_port_run(len(brokers), BROKERS)
    settings = {
        "upstream.bootstrap.servers": ",".join(map(str, brokers)),
        "gateway.port.base": str(first - 1),
        "workers": str(WORKERS),
        "gateway.workers": "1",
        "log.level": "warning",
        **more,
    }
    with kind("Groupkeeper", work, settings) as server:
        server.start()
        for number in range(len(brokers)):
            wait_for(Address(HOST, first + number))
        yield server, Fronting(server, Address(HOST, first))
