# SPDX-License-Identifier: Apache-2.0
"""Groups of unusual size: with very many offsets, or with a very long id."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator.cluster_requests.model import TopicPartition, TransferredOffset
from coordinator.cluster_requests.offsets import OFFSETS_PER_STEP
from coordinator.cluster_requests.request import NEEDED, ClusterRequest, make_plain_request
from coordinator.config import Address
from coordinator.upstream.aiokafka_request import UpstreamResponse
from coordinator.upstream.broker_connection import LONG_BYTES
from coordinator.upstream.cluster import UpstreamBroker, UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.groups import UpstreamGroups
from protocol import newtypes
from protocol.apis import ApiKey
from protocol.bounds import REMEMBERED_NAME_MAX
from protocol.hot.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.kafka_python_messages import FindCoordinatorResponse
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId
from protocol.stepwise_message_reader import ITEMS_PER_STEP

COUNT = 10_000
PER_TOPIC = 10
GROUP = GroupId("large")


class Large(UpstreamCluster):
    """A cluster whose group has very many offsets; every second partition has none."""

    def __init__(self) -> None:
        super().__init__(UpstreamConfig((Address("127.0.0.1", 1),)), read=_read)
        self.brokers = {1: UpstreamBroker(1, "h", 1, None)}
        self.asked: Counter[ApiKey] = Counter()

    async def send_request(
        self, question: ClusterRequest[Any], *, node_id: int | None = None
    ) -> UpstreamResponse:
        """The answer of its only broker."""
        self.asked[question.api] += 1
        version = NEEDED[question.api].max
        if question.api is ApiKey.FIND_COORDINATOR:
            request: Any = question.build(version)
            (key,) = request.coordinator_keys
            response: Any = _coordinator(version, key)
        else:
            response = _offsets(version)
        body = find_message_codec(question.api, version).encode_response(response)
        return UpstreamResponse(question.api, version, body, 0)


def _read(path: Path) -> bytes:
    raise AssertionError(f"{path} is not read")


def _coordinator(version: int, key: str) -> Any:
    kind = FindCoordinatorResponse.Coordinator
    found = kind(version=version, key=key, node_id=1, host="h", port=1, error_code=0)
    return FindCoordinatorResponse(version=version, coordinators=[found])


def _offsets(_version: int) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopics(
            name=f"topic-{number}",
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=each,
                    committed_offset=newtypes.Offset(number if each % 2 else -1),
                    committed_leader_epoch=each,
                    metadata="m" if each % 3 else None,
                )
                for each in range(PER_TOPIC)
            ],
        )
        for number in range(COUNT // PER_TOPIC)
    ]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=GROUP, topics=topics)])


async def test_the_offsets_of_a_very_large_group_are_read_in_many_turns() -> None:
    cluster = Large()
    answer = await cluster.send_request(make_plain_request(ApiKey.OFFSET_FETCH, None))
    assert len(answer.frame) > LONG_BYTES
    turns = 0
    reading = asyncio.create_task(UpstreamGroups(cluster).fetch_committed_offsets(GROUP))
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert reading.result() == {
        TopicPartition(f"topic-{number}", each): TransferredOffset(number, each, "m" if each % 3 else "")
        for number in range(COUNT // PER_TOPIC)
        for each in range(1, PER_TOPIC, 2)
    }
    assert turns >= COUNT // ITEMS_PER_STEP + COUNT // OFFSETS_PER_STEP


@pytest.mark.parametrize(("length", "times"), [(REMEMBERED_NAME_MAX, 1), (REMEMBERED_NAME_MAX + 1, 2)])
async def test_the_coordinator_of_a_group_with_a_very_long_id_is_not_remembered(
    length: int, times: int
) -> None:
    cluster = Large()
    for _ in range(2):
        await cluster.call_coordinator_once("g" * length, make_plain_request(ApiKey.OFFSET_FETCH, None))
    assert cluster.asked[ApiKey.FIND_COORDINATOR] == times
