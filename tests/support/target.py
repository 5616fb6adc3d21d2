# SPDX-License-Identifier: Apache-2.0
"""What the client tests run against: Groupkeeper, or a real Kafka to prove the tests themselves.

GROUPKEEPER_TEST_TARGET=groupkeeper|kafka|gateway chooses; the default is groupkeeper. A gateway is Groupkeeper with a
real Kafka behind it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from bench.kafka import KAFKA_VERSION
from bench.ports import free_port_run
from tests.kafka.broker import KafkaBroker
from tests.support.service import Service

OWN_PORTS = 5
"""Of a gateway: for clients, and for the metrics of each of its processes."""


class Target(Protocol):
    """A server that speaks Kafka's protocol and can be crashed."""

    kind: str
    settings: dict[str, str | int]

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""

    def launch(self) -> None:
        """Start it and return at once."""

    def start(self) -> None:
        """Start it and wait until clients are accepted."""

    def reads_and_writes(self) -> int:
        """How many calls that read or write its process has made; 0 for one that has ended."""

    def kill9(self) -> None:
        """Crash it."""

    def restart(self) -> None:
        """Start it again on the same port and data."""

    def terminate(self) -> None:
        """Ask it to stop, and see it stop in good order."""

    def close(self) -> None:
        """End it."""


class Gateway(Service):
    """Groupkeeper in front of a Kafka of one broker; what is crashed and restarted is Groupkeeper."""

    kind = "gateway"

    def __init__(
        self,
        work: Path,
        settings: Mapping[str, str | int],
        brokers: Mapping[str, str | int] | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        """`settings` are given to both, `brokers` to Kafka alone, which has this version."""
        self.broker = KafkaBroker(work / "kafka", {**settings, **(brokers or {})}, version=version)
        ours = {name: value for name, value in settings.items() if name != "node.id"}
        ours["upstream.bootstrap.servers"] = self.broker.bootstrap
        node_id = int(settings.get("node.id", 1))
        first = free_port_run(OWN_PORTS + node_id + 1)
        ours["gateway.port.base"] = first + OWN_PORTS  # of brokers there may be many
        super().__init__(work, ours)
        self.port, self.metrics_port = first, first + 1

    def start(self) -> None:
        """Start Kafka, if it does not run yet, and Groupkeeper in front of it."""
        if not self.broker.runs:
            self.broker.start()
        super().start()

    def close(self) -> None:
        """End both."""
        super().close()
        self.broker.close()


KINDS = ("groupkeeper", "kafka", "gateway")


def target_kind() -> str:
    """Return `groupkeeper`, `kafka` or `gateway`, as the environment says."""
    kind = os.environ.get("GROUPKEEPER_TEST_TARGET") or "groupkeeper"
    assert kind in KINDS, f"GROUPKEEPER_TEST_TARGET is {kind!r}, not one of {', '.join(KINDS)}"
    return kind


def keeps_records() -> bool:
    """Whether the chosen server has records of topics, itself or behind it."""
    return target_kind() != "groupkeeper"


@contextmanager
def running_target(
    work: Path,
    settings: Mapping[str, str | int] | None = None,
    brokers: Mapping[str, str | int] | None = None,
) -> Iterator[Target]:
    """Run the chosen server under `work`.

    Unless `settings` say otherwise: no wait before a group's first rebalance, and topics get 12 partitions. What
    Groupkeeper knows no setting for stands in `brokers`, for Kafka alone.
    """
    chosen = {"group.initial.rebalance.delay.ms": 0, "num.partitions": 12, **(settings or {})}
    server = _prepared(work, chosen, brokers or {})
    try:
        server.start()
        yield server
    finally:
        server.close()


def _prepared(work: Path, settings: Mapping[str, str | int], brokers: Mapping[str, str | int]) -> Target:
    kind = target_kind()
    if kind == "gateway":
        return Gateway(work, settings, brokers)
    return KafkaBroker(work, {**settings, **brokers}) if kind == "kafka" else Service(work, settings)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One server for a whole folder's tests; each test uses groups and topics of its own."""
    with running_target(tmp_path_factory.mktemp("target")) as server:
        yield server


@pytest.fixture
def own_target(tmp_path: Path) -> Iterator[Target]:
    """A server for one test, which may crash it."""
    with running_target(tmp_path / "target") as server:
        yield server
