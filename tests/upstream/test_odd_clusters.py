# SPDX-License-Identifier: Apache-2.0
"""A cluster whose answers can be read, and say what no cluster of Kafka would."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordinator.config import Address
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.cluster import BROKERS_MAX, UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import UpstreamNotKafka
from coordinator.upstream.monitor import UpstreamMonitor
from coordinator.upstream.topic_diff import TopicDiff
from protocol.apis import ApiKey
from protocol.kafka_python_messages import find_request_and_response_classes
from protocol.message_codecs import find_message_codec
from tests.partitions.running import eventually
from tests.support.log_lines import LogLines

VERSION = 12
RESPONSE: Any = find_request_and_response_classes(ApiKey.METADATA)[1]


def topic(name: str | None, number: int, partitions: int = 1) -> Any:
    """A topic with the id of this number."""
    rows = [
        RESPONSE.MetadataResponseTopic.MetadataResponsePartition(
            version=VERSION,
            error_code=0,
            partition_index=index,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=[1],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for index in range(partitions)
    ]
    return RESPONSE.MetadataResponseTopic(
        version=VERSION,
        error_code=0,
        name=name,
        topic_id=UUID(int=number),
        is_internal=False,
        partitions=rows,
        authorized_operations=set(),
    )


def metadata(topics: Sequence[Any] = (), brokers: int = 1) -> UpstreamResponse:
    """The answer of a cluster with these topics and so many brokers."""
    response = RESPONSE(
        version=VERSION,
        throttle_time_ms=0,
        brokers=[
            RESPONSE.MetadataResponseBroker(
                version=VERSION, node_id=each, host="localhost", port=1, rack=None
            )
            for each in range(brokers)
        ],
        cluster_id="odd",
        controller_id=1,
        topics=list(topics),
    )
    return UpstreamResponse(
        ApiKey.METADATA, VERSION, find_message_codec(ApiKey.METADATA, VERSION).encode_response(response), 0
    )


class Odd(UpstreamCluster):
    """Answers Metadata with what a test gives it."""

    said: UpstreamResponse | Exception

    async def fetch_encoded_metadata(
        self, topics: list[str] | None, *, node_id: int | None = None
    ) -> UpstreamResponse:
        """What the test says."""
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def read(path: Path) -> bytes:
    raise AssertionError(f"{path} is not read")


def odd(said: UpstreamResponse | Exception) -> Odd:
    cluster = Odd(UpstreamConfig((Address("127.0.0.1", 1),)), read=read)
    cluster.said = said
    return cluster


def following(cluster: Odd, seen: list[TopicDiff]) -> UpstreamMonitor:
    async def changed(change: TopicDiff) -> None:
        seen.append(change)

    return UpstreamMonitor(cluster, {}, refresh_ms=1, on_topics=changed, on_brokers=lambda _: None)


async def test_more_brokers_than_can_be_served_are_no_cluster() -> None:
    with pytest.raises(
        UpstreamNotKafka, match=f"names {BROKERS_MAX + 1} brokers; {BROKERS_MAX} can be served"
    ):
        await following(odd(metadata(brokers=BROKERS_MAX + 1)), []).refresh_and_report_changes()


async def test_a_look_that_fails_at_something_unforeseen_is_followed_by_others(lines: LogLines) -> None:
    cluster = odd(KeyError("not foreseen"))
    seen: list[TopicDiff] = []
    monitor = following(cluster, seen)
    run = asyncio.create_task(monitor.run())
    while monitor.failing is None:
        await asyncio.sleep(0)
        assert not run.done()
    assert "not foreseen" in monitor.failing
    assert "a look at the cluster has failed at what was not foreseen" in lines.events
    cluster.said = metadata([topic("t", 1)])
    monitor.refresh_soon()
    await eventually(lambda: seen or run.done(), "the topic")
    assert not run.done()
    assert seen[0].created.keys() == {"t"}
    run.cancel()
