# SPDX-License-Identifier: Apache-2.0
"""A broker that answers what is no answer."""

import asyncio
from pathlib import Path

import pytest

from coordinator.config import Address
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import UpstreamNotKafka
from coordinator.upstream.monitor import UpstreamMonitor
from coordinator.upstream.topic_diff import TopicDiff
from protocol.apis import ApiKey


class Garbling(UpstreamCluster):
    """Its brokers answer Metadata with bytes that are none."""

    async def fetch_encoded_metadata(
        self, topics: list[str] | None, *, node_id: int | None = None
    ) -> UpstreamResponse:
        """Some bytes."""
        return UpstreamResponse(ApiKey.METADATA, 12, b"\xff" * 50, 0)


def read(path: Path) -> bytes:
    raise AssertionError(f"{path} is not read")


async def changed(_change: TopicDiff) -> None:
    raise AssertionError("nothing has changed")


async def test_a_look_at_what_is_no_metadata_fails_as_any_other() -> None:
    cluster = Garbling(UpstreamConfig((Address("127.0.0.1", 1),)), read=read)
    monitor = UpstreamMonitor(cluster, {}, refresh_ms=1, on_topics=changed, on_brokers=lambda _: None)
    with pytest.raises(UpstreamNotKafka, match=r"upstream.bootstrap.servers: .* no METADATA response"):
        await monitor.refresh_and_report_changes()
    following = asyncio.create_task(monitor.run())
    while monitor.failing is None:
        await asyncio.sleep(0)
        assert not following.done()
    following.cancel()
