# SPDX-License-Identifier: Apache-2.0
"""What a scripted node answers, and a clock for who waits for it."""

import uuid
from typing import Any

from coordinator.cli.cluster.client import Client
from coordinator.config import Address
from protocol.errors import ErrorCode
from protocol.hot.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.kafka_python_messages import (
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    MetadataResponse,
)
from protocol.newtypes import GroupId, Offset
from tests.cli.fake import FakeNode
from tests.support.consumer_protocol import encode_assignment


def metadata(*nodes: FakeNode, topics: dict[str, int] | None = None) -> Any:
    """A cluster of these nodes, the first of which leads all partitions of topics with so many each."""
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=i, host="127.0.0.1", port=node.port, rack=None)
        for i, node in enumerate(nodes)
    ]
    kind = MetadataResponse.MetadataResponseTopic
    found = [
        kind(
            error_code=0,
            name=name,
            topic_id=uuid.UUID(int=1),
            is_internal=False,
            partitions=[
                kind.MetadataResponsePartition(
                    error_code=0,
                    partition_index=p,
                    leader_id=0,
                    leader_epoch=0,
                    replica_nodes=[0],
                    isr_nodes=[0],
                    offline_replicas=[],
                )
                for p in range(count)
            ],
        )
        for name, count in (topics or {}).items()
    ]
    return MetadataResponse(
        throttle_time_ms=0, brokers=brokers, cluster_id="c", controller_id=0, topics=found
    )


def coordinator(node: FakeNode | None, code: ErrorCode = ErrorCode.NONE) -> Any:
    port, host, node_id = (node.port, "127.0.0.1", 7) if node else (-1, "", -1)
    found = FindCoordinatorResponse.Coordinator(
        key="g", node_id=node_id, host=host, port=port, error_code=code, error_message=""
    )
    return FindCoordinatorResponse(throttle_time_ms=0, coordinators=[found])


def ends(request: Any, known: dict[tuple[str, int], int]) -> Any:
    """ListOffsets' answer to a request for some partitions, of which these offsets are known."""
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = [
        kind(
            name=topic.name,
            partitions=[
                kind.ListOffsetsPartitionResponse(
                    partition_index=p.partition_index,
                    error_code=0 if (topic.name, p.partition_index) in known else 43,
                    timestamp=-1,
                    offset=known.get((topic.name, p.partition_index), -1),
                    leader_epoch=-1,
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def listed(*groups: tuple[str, str]) -> Any:
    return ListGroupsResponse(
        throttle_time_ms=0,
        error_code=0,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group, protocol_type="consumer", group_state=state, group_type="classic"
            )
            for group, state in groups
        ],
    )


def described(
    group: str = "g", state: str = "Stable", code: int = 0, members: list[Any] | None = None
) -> Any:
    one = DescribeGroupsResponse.DescribedGroup(
        error_code=code,
        error_message=None,
        group_id=group,
        group_state=state,
        protocol_type="consumer",
        protocol_data="range",
        members=members or [],
    )
    return DescribeGroupsResponse(throttle_time_ms=0, groups=[one])


def member(member_id: str, assignment: dict[str, list[int]], instance: str | None = None) -> Any:
    return DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
        member_id=member_id,
        group_instance_id=instance,
        client_id="app",
        client_host="/10.0.0.1",
        member_metadata=b"",
        member_assignment=encode_assignment(assignment),
    )


def committed(code: int = 0, **topics: dict[int, int]) -> Any:
    answer = OffsetFetchResponseGroup(
        group_id=GroupId("g"),
        topics=[
            OffsetFetchResponseTopics(
                name=topic,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=p,
                        committed_offset=Offset(offset),
                        committed_leader_epoch=2,
                        metadata="m",
                    )
                    for p, offset in offsets.items()
                ],
            )
            for topic, offsets in topics.items()
        ],
        error_code=code,
    )
    return OffsetFetchResponse(groups=[answer])


class Patience:
    """A clock that moves when somebody pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1

    def client(self, node: FakeNode, timeout_s: float = 15.0) -> Client:
        return Client([Address("127.0.0.1", node.port)], timeout_s, clock=self.clock, pause=self.pause)
