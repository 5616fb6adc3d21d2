# SPDX-License-Identifier: Apache-2.0
"""What the client tests run against: Groupkeeper, or a real Kafka to prove the tests themselves.

GROUPKEEPER_TEST_TARGET=groupkeeper|kafka chooses; the default is groupkeeper.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests.kafka.broker import KafkaBroker
from tests.support.service import Service


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


def target_kind() -> str:
    """Return `groupkeeper` or `kafka`, as the environment says."""
    kind = os.environ.get("GROUPKEEPER_TEST_TARGET") or "groupkeeper"
    assert kind in {"groupkeeper", "kafka"}, f"GROUPKEEPER_TEST_TARGET is {kind!r}, not groupkeeper or kafka"
    return kind


@contextmanager
def running_target(work: Path, settings: Mapping[str, str | int] | None = None) -> Iterator[Target]:
    """Run the chosen server under `work`.

    Unless `settings` say otherwise: no wait before a group's first rebalance, and topics get 12 partitions.
    """
    chosen = {"group.initial.rebalance.delay.ms": 0, "num.partitions": 12, **(settings or {})}
    server: Target = KafkaBroker(work, chosen) if target_kind() == "kafka" else Service(work, chosen)
    try:
        server.start()
        yield server
    finally:
        server.close()


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
