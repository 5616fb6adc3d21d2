# SPDX-License-Identifier: Apache-2.0
"""Nodes for one test, which may kill them; and a real Kafka for the tests of a module."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kafka.cluster import KafkaCluster
from tests.kafka.java_shell import java_shell
from tests.workers.nodes import Nodes

__all__ = ["java_shell"]


@pytest.fixture
def make_nodes(tmp_path: Path) -> Iterator[Callable[..., Nodes]]:
    """Makes a supervisor with so many workers; all processes end with the test."""
    made: list[Nodes] = []

    def make(workers: int, **settings: str | int) -> Nodes:
        nodes = Nodes(tmp_path, workers, {key.replace("_", "."): value for key, value in settings.items()})
        made.append(nodes)
        nodes.start()
        return nodes

    yield make
    for nodes in made:
        nodes.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster of one broker, which the tests of a module share."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("kafka"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
