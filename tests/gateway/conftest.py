# SPDX-License-Identifier: Apache-2.0
"""A real broker behind a gateway, and Kafka's tools."""

from collections.abc import Iterator

import pytest

from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.kafka.java_shell import java_shell

__all__ = ["java_shell"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """One broker behind `groupkeeper serve`; each test has topics and groups of its own."""
    work = tmp_path_factory.mktemp("whole")
    cluster = KafkaCluster(work / "kafka")
    running = Whole(work / "node", cluster)
    try:
        cluster.start()
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()
