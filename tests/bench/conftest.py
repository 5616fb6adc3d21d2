# SPDX-License-Identifier: Apache-2.0
"""A server for the scenarios. GROUPKEEPER_TEST_TARGET=kafka plays them against a real Kafka instead."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # kafka-python uses a deprecated function while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bench.kafka import Kafka
    from bench.servers import Groupkeeper, Server

from tests.kafka.jars import require_kafka_classpath
from tests.support.target import target_kind


def make_server(work: Path) -> Server:
    """The chosen kind of server, not started."""
    if target_kind() == "kafka":
        require_kafka_classpath()
        return Kafka("kafka", work)
    return Groupkeeper("groupkeeper", work, {"log.flush": "os"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server for one module's tests; each scenario makes groups of its own."""
    with make_server(tmp_path_factory.mktemp("server") / "work") as running:
        running.start()
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test starts and kills."""
    with make_server(tmp_path / "work") as stopped:
        yield stopped
