# SPDX-License-Identifier: Apache-2.0
"""What attackers send to a gateway, as frames made from a seed.

Names that are made up have no digits, those of the groups and topics that there are have some: no attacker deletes
what the others ask for.
"""

from random import Random
from string import ascii_lowercase
from typing import Final

from bench.attack.frames import header, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetDeleteRequest,
)
from protocol.newtypes import GroupId, MemberId, Offset

TOPIC: Final = "wide-1"
PARTITIONS: Final = 2_000
LARGE_GROUP: Final = "large-1"
METADATA_BYTES: Final = 4_096
"""With each of the large group's offsets, of which there is one in each partition."""
COMMITTED_AT_ONCE: Final = 200
"""So many offsets with metadata are less than the megabyte that a commit may have."""

NAMES: Final = (2_000, 20_000)
SHORT_NAME: Final = 2
LONG_NAME: Final = (8, 20)
HALF_OF_BYTES: Final = 900_000
PIPELINED: Final = 100
UNKNOWN_PARTITIONS: Final = (2_000, 12_000)
UNKNOWN_TOPICS: Final = (1, 2_000)


def large_commits() -> list[bytes]:
    """OffsetCommits, which make the large group: 8 MB in all."""
    return [
        request(ApiKey.OFFSET_COMMIT, 8, _large_commit(range(start, start + COMMITTED_AT_ONCE)))
        for start in range(0, PARTITIONS, COMMITTED_AT_ONCE)
    ]


def _large_commit(partitions: range) -> hot.OffsetCommitRequest:
    metadata = "x" * METADATA_BYTES
    rows = [
        hot.OffsetCommitRequestPartition(index, Offset(index), committed_metadata=metadata)
        for index in partitions
    ]
    topics = [hot.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    return hot.OffsetCommitRequest(group_id=GroupId(LARGE_GROUP), topics=topics)


def fetch_large() -> bytes:
    """OffsetFetch of all offsets of the large group: some 40 bytes, and 8 MB are the answer."""
    groups = [hot.OffsetFetchRequestGroup(group_id=GroupId(LARGE_GROUP), topics=None)]
    return request(ApiKey.OFFSET_FETCH, 8, hot.OffsetFetchRequest(groups=groups))


def many_names(random: Random) -> bytes:
    """A request that names thousands of groups or topics, many of them several times."""
    names = _names(random, random.randint(*NAMES))
    make = random.choice((_describe_groups, _delete_groups, _find_coordinators, _delete_offsets))
    return make(names)


def _names(random: Random, count: int) -> list[str]:
    return [_name(random) for _ in range(count)]


def _name(random: Random) -> str:
    length = random.choice((SHORT_NAME, random.randint(*LONG_NAME)))
    return "".join(random.choices(ascii_lowercase, k=length))


def _describe_groups(names: list[str]) -> bytes:
    message = DescribeGroupsRequest(version=5, groups=names, include_authorized_operations=True)
    return request(ApiKey.DESCRIBE_GROUPS, 5, message)


def _delete_groups(names: list[str]) -> bytes:
    return request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(version=2, groups_names=names))


def _find_coordinators(names: list[str]) -> bytes:
    message = FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=names)
    return request(ApiKey.FIND_COORDINATOR, 4, message)


def _delete_offsets(names: list[str]) -> bytes:
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = kind.OffsetDeleteRequestPartition(partition_index=0)
    topics = [kind(name=name, partitions=[partition]) for name in names]
    return request(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=LARGE_GROUP, topics=topics))


def half_request(random: Random) -> bytes:
    """The first half of a request that is collected before anybody looks into it."""
    api = random.choice((ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_GROUPS))
    begun = HALF_OF_BYTES.to_bytes(4, "big") + header(api, 5)
    return begun.ljust(HALF_OF_BYTES // 2, b"\0")


def pipelined_lists(random: Random) -> bytes:
    """Many requests for all groups and all topics."""
    asked = (
        request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4)),
        request(ApiKey.METADATA, 9, MetadataRequest(version=9, topics=None)),
    )
    return b"".join(random.choices(asked, k=PIPELINED))


def small_request(random: Random) -> bytes:
    """A request of few bytes; one of a hundred has a long answer."""
    group = GroupId(_name(random))
    asked = (
        request(ApiKey.METADATA, 9, MetadataRequest(version=9, topics=[])),
        request(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(version=2, key=group, key_type=0)),
        request(ApiKey.HEARTBEAT, 3, hot.HeartbeatRequest(group, 1, MemberId("nobody"))),
        fetch_large(),
    )
    return random.choices(asked, weights=(33, 33, 33, 1))[0]


def unknown_commit(random: Random) -> bytes:
    """An OffsetCommit of thousands of partitions of topics that do not exist."""
    topics = random.randint(*UNKNOWN_TOPICS)
    rows = [
        hot.OffsetCommitRequestPartition(index, Offset(1))
        for index in range(random.randint(*UNKNOWN_PARTITIONS) // topics)
    ]
    named = [hot.OffsetCommitRequestTopic(name=name, partitions=rows) for name in _names(random, topics)]
    message = hot.OffsetCommitRequest(group_id=GroupId(_name(random)), topics=named)
    return request(ApiKey.OFFSET_COMMIT, 8, message)
