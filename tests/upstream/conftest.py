# SPDX-License-Identifier: Apache-2.0
"""One real broker with all listeners for the tests of this folder."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from tests.kafka.cluster import PROTOCOLS, KafkaCluster
from tests.support.newer_groups import LONG_SESSIONS
from tests.upstream.servers import servers


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker with all listeners, which asks for rights."""
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("upstream"),
        protocols=PROTOCOLS,
        acls=True,
        settings={
            "group.consumer.min.session.timeout.ms": 1_000,
            "group.consumer.session.timeout.ms": 6_000,
            **LONG_SESSIONS,
        },
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
async def upstream(kafka: KafkaCluster) -> AsyncIterator[UpstreamCluster]:
    """Our client, connected to that broker."""
    config = UpstreamConfig(servers(kafka.bootstrap()), request_timeout_ms=20_000)
    cluster = UpstreamCluster(config, read=Path.read_bytes)
    await cluster.connect()
    yield cluster
    await cluster.close()
