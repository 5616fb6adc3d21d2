# SPDX-License-Identifier: Apache-2.0
"""A real broker behind a gateway."""

from collections.abc import Iterator

import pytest

from tests.gateway.running import Gatewayed
from tests.kafka.cluster import KafkaCluster


@pytest.fixture(scope="module")
def gatewayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gatewayed]:
    """One broker, one node of ours, and one process that forwards; each test has topics and groups of its own."""
    work = tmp_path_factory.mktemp("gatewayed")
    cluster = KafkaCluster(work / "kafka")
    running = Gatewayed(work, cluster)
    try:
        cluster.start()
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()
