# SPDX-License-Identifier: Apache-2.0
"""Committing, fetching and deleting offsets in every version, from bytes to bytes."""

from pathlib import Path
from typing import Any

import pytest

from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import OffsetDeleteRequest
from protocol.newtypes import GroupId, Offset
from tests.groups.harness import WALL_START_MS
from tests.net import requests
from tests.net.edge import Client, Edge
from tests.net.requests import OTHER_TOPIC, TOPIC
from tests.support.apis import SUPPORTED
from tests.support.groups import classic

NONE = ErrorCode.NONE
NO_ID = bytes(16)
NOWHERE_ID = b"nowhere-to-be-id"
COMMIT_VERSIONS = range(SUPPORTED[ApiKey.OFFSET_COMMIT].min, SUPPORTED[ApiKey.OFFSET_COMMIT].max + 1)
FETCH_VERSIONS = range(SUPPORTED[ApiKey.OFFSET_FETCH].min, SUPPORTED[ApiKey.OFFSET_FETCH].max + 1)
every_commit = pytest.mark.parametrize("version", COMMIT_VERSIONS)
every_fetch = pytest.mark.parametrize("version", FETCH_VERSIONS)


@pytest.fixture
async def edge(tmp_path: Path) -> Edge:
    return Edge(tmp_path)


@pytest.fixture
async def client(edge: Edge) -> Client:
    return edge.connect()


def id_of(edge: Edge, topic: str) -> bytes:
    found = edge.node.catalogue.get(topic)
    return NOWHERE_ID if found is None else found.id


def name_and_id(edge: Edge, topic: str, version: int) -> tuple[str, bytes]:
    """How a request of this version names a topic: by its id from v10 on."""
    return ("", id_of(edge, topic)) if version >= 10 else (topic, NO_ID)


def commit(
    edge: Edge, client: Client, version: int, topics: dict[str, dict[int, Any]], **fields: Any
) -> list[tuple[str, int, ErrorCode]]:
    """Commit offsets, or (offset, leader epoch, metadata); returns topic, partition and error of each."""
    asked = []
    for topic, offsets in topics.items():
        name, topic_id = name_and_id(edge, topic, version)
        partitions = []
        for index, value in offsets.items():
            offset, epoch, metadata = value if isinstance(value, tuple) else (value, -1, "")
            partitions.append(
                hot.OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata=metadata,
                )
            )
        asked.append(hot.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=partitions))
    fields.setdefault("generation_id_or_member_epoch", -1)
    message = hot.OffsetCommitRequest(group_id=GroupId("g"), topics=asked, **fields)
    client.send(requests.request(ApiKey.OFFSET_COMMIT, version, message))
    (frame,) = client.answers()
    answers = requests.answer(ApiKey.OFFSET_COMMIT, version, frame).topics
    assert [(topic.name, topic.topic_id) for topic in answers] == [
        name_and_id(edge, topic, version) for topic in topics
    ]
    return [
        (topic, partition.partition_index, ErrorCode(partition.error_code))
        for topic, answer in zip(topics, answers, strict=True)
        for partition in answer.partitions
    ]


Told = dict[str, dict[int, tuple[int, int, str, int]]]


def fetch(
    edge: Edge, client: Client, version: int, topics: dict[str, list[int]] | None, group: str = "g"
) -> Told:
    """Fetch offsets: (offset, leader epoch, metadata, error) by topic and partition."""
    if version >= 8:
        wanted = None
        if topics is not None:
            wanted = []
            for topic, indexes in topics.items():
                name, topic_id = name_and_id(edge, topic, version)
                wanted.append(hot.OffsetFetchRequestTopics(name, topic_id, indexes))
        message = hot.OffsetFetchRequest(
            groups=[hot.OffsetFetchRequestGroup(group_id=GroupId(group), topics=wanted)]
        )
    else:
        named = None if topics is None else [hot.OffsetFetchRequestTopic(*item) for item in topics.items()]
        message = hot.OffsetFetchRequest(group_id=GroupId(group), topics=named)
    client.send(requests.request(ApiKey.OFFSET_FETCH, version, message))
    (frame,) = client.answers()
    answer = requests.answer(ApiKey.OFFSET_FETCH, version, frame)
    if version >= 8:
        (answer,) = answer.groups
        assert answer.group_id == group
    assert answer.error_code == NONE
    names = {id_of(edge, topic): topic for topic in (TOPIC, OTHER_TOPIC)}
    return {
        names.get(topic.topic_id, "?") if version >= 10 else topic.name: {
            p.partition_index: (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
            for p in topic.partitions
        }
        for topic in answer.topics
    }


# --- committing ---


@every_commit
async def test_what_is_committed_is_told(edge: Edge, client: Client, version: int) -> None:
    offsets = {TOPIC: {0: (5, 3, "m"), 7: (1 << 60, -1, "")}, OTHER_TOPIC: {0: (0, 0, "\u00fc\U0001f600")}}
    assert {error for _, _, error in commit(edge, client, version, offsets)} == {NONE}
    told = fetch(edge, client, 9, None)
    epochs = version >= 6  # before, the request has no leader epoch
    assert told == {
        topic: {
            index: (offset, epoch if epochs else -1, metadata, 0)
            for index, (offset, epoch, metadata) in partitions.items()
        }
        for topic, partitions in offsets.items()
    }


@every_commit
async def test_a_commit_is_answered_partition_by_partition_in_its_order(
    edge: Edge, client: Client, version: int
) -> None:
    answers = commit(edge, client, version, {OTHER_TOPIC: {9: 1, 2: 1, 5: 1}, TOPIC: {3: 1}})
    assert answers == [
        (OTHER_TOPIC, 9, NONE),
        (OTHER_TOPIC, 2, NONE),
        (OTHER_TOPIC, 5, NONE),
        (TOPIC, 3, NONE),
    ]


@every_commit
async def test_a_topic_that_is_not_there_is_refused_alone(edge: Edge, client: Client, version: int) -> None:
    missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = commit(edge, client, version, {"nowhere": {0: 1}, TOPIC: {0: 1}})
    assert answers == [("nowhere", 0, missing), (TOPIC, 0, NONE)]
    assert fetch(edge, client, 7, None) == {TOPIC: {0: (1, -1, "", 0)}}


@every_commit
async def test_a_commit_of_nothing_that_exists_makes_no_group(
    edge: Edge, client: Client, version: int
) -> None:
    commit(edge, client, version, {"nowhere": {0: 1}})
    assert classic(edge.manager, "g") is None
    assert edge.commits == []


@every_commit
async def test_metadata_that_is_too_long_refuses_its_partition_alone(
    edge: Edge, client: Client, version: int
) -> None:
    longest, too_long = "x" * 4_096, "x" * 4_097
    answers = commit(edge, client, version, {TOPIC: {0: (1, -1, longest), 1: (2, -1, too_long), 2: 3}})
    assert answers == [
        (TOPIC, 0, NONE),
        (TOPIC, 1, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        (TOPIC, 2, NONE),
    ]
    assert fetch(edge, client, 7, None) == {TOPIC: {0: (1, -1, longest, 0), 2: (3, -1, "", 0)}}


@every_commit
async def test_null_metadata_is_none(edge: Edge, client: Client, version: int) -> None:
    assert commit(edge, client, version, {TOPIC: {0: (1, -1, None)}}) == [(TOPIC, 0, NONE)]
    assert fetch(edge, client, 7, None) == {TOPIC: {0: (1, -1, "", 0)}}


@every_commit
async def test_a_partition_that_comes_twice_has_the_last_value_and_two_answers(
    edge: Edge, client: Client, version: int
) -> None:
    name, topic_id = name_and_id(edge, TOPIC, version)
    twice = [hot.OffsetCommitRequestPartition(4, Offset(offset)) for offset in (10, 20)]
    topic = hot.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=twice)
    message = hot.OffsetCommitRequest(group_id=GroupId("g"), generation_id_or_member_epoch=-1, topics=[topic])
    client.send(requests.request(ApiKey.OFFSET_COMMIT, version, message))
    (frame,) = client.answers()
    (answer,) = requests.answer(ApiKey.OFFSET_COMMIT, version, frame).topics
    assert [(p.partition_index, p.error_code) for p in answer.partitions] == [(4, 0), (4, 0)]
    assert fetch(edge, client, 7, None) == {TOPIC: {4: (20, -1, "", 0)}}


# --- an explicit retention time, v2 to v4 ---

DAY_MS = 86_400_000


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("retention_ms", "expire_ms"),
    [
        (-1, None),
        (0, WALL_START_MS),
        (1, WALL_START_MS + 1),
        (DAY_MS, WALL_START_MS + DAY_MS),
        ((1 << 63) - 1, (1 << 63) - 1),  # for ever; in Kafka the sum overflows and the offset is gone at once
    ],
)
async def test_a_retention_time_makes_an_expire_timestamp(
    edge: Edge, client: Client, version: int, retention_ms: int, expire_ms: int | None
) -> None:
    answers = commit(edge, client, version, {TOPIC: {0: 1}}, retention_time_ms=retention_ms)
    assert answers == [(TOPIC, 0, NONE)]
    kept = edge.manager.find(GroupId("g"))
    assert kept is not None
    value = kept.offsets.by_topic[TOPIC][0]
    assert (value.commit_timestamp, value.expire_timestamp) == (WALL_START_MS, expire_ms)


@pytest.mark.parametrize("version", range(5, 11))
async def test_later_versions_have_no_retention_time(edge: Edge, client: Client, version: int) -> None:
    commit(edge, client, version, {TOPIC: {0: 1}}, retention_time_ms=5)
    kept = edge.manager.find(GroupId("g"))
    assert kept is not None
    assert kept.offsets.by_topic[TOPIC][0].expire_timestamp is None


# --- fetching ---


@every_fetch
async def test_offsets_are_told_in_the_order_they_are_asked_for(
    edge: Edge, client: Client, version: int
) -> None:
    commit(edge, client, 8, {TOPIC: {0: (5, 3, "m"), 1: 6}, OTHER_TOPIC: {9: 7}})
    epoch = 3 if version >= 5 else -1
    told = fetch(edge, client, version, {OTHER_TOPIC: [9, 2], TOPIC: [1, 0]})
    assert told == {
        OTHER_TOPIC: {9: (7, -1, "", 0), 2: (-1, -1, "", 0)},
        TOPIC: {1: (6, -1, "", 0), 0: (5, epoch, "m", 0)},
    }
    assert [list(partitions) for partitions in told.values()] == [[9, 2], [1, 0]]


@pytest.mark.parametrize("version", range(2, 11))
async def test_null_asks_for_all_topics(edge: Edge, client: Client, version: int) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5, 1: 6}, OTHER_TOPIC: {9: 7}})
    told = fetch(edge, client, version, None)
    assert {topic: {index: value[0] for index, value in ps.items()} for topic, ps in told.items()} == {
        TOPIC: {0: 5, 1: 6},
        OTHER_TOPIC: {9: 7},
    }


@every_fetch
async def test_an_empty_list_asks_for_nothing(edge: Edge, client: Client, version: int) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5}})
    assert fetch(edge, client, version, {}) == {}


@every_fetch
async def test_a_group_that_is_not_there_has_no_offsets_and_no_error(
    edge: Edge, client: Client, version: int
) -> None:
    assert fetch(edge, client, version, {TOPIC: [0, 1]}, "nobody") == {
        TOPIC: {0: (-1, -1, "", 0), 1: (-1, -1, "", 0)}
    }
    assert classic(edge.manager, "nobody") is None


@pytest.mark.parametrize("version", range(1, 10))
async def test_a_topic_that_is_not_there_has_no_offsets_and_no_error(
    edge: Edge, client: Client, version: int
) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5}})
    assert fetch(edge, client, version, {"nowhere": [0]}) == {"nowhere": {0: (-1, -1, "", 0)}}


async def test_an_id_that_is_nobodys_is_unknown(edge: Edge, client: Client) -> None:
    told = fetch(edge, client, 10, {"nowhere": [0]})
    assert told == {"?": {0: (-1, -1, "", int(ErrorCode.UNKNOWN_TOPIC_ID))}}


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_several_groups_are_answered_in_their_order_repeats_too(
    edge: Edge, client: Client, version: int
) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5}})
    wanted = [
        hot.OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
        for group in ("nobody", "g", "nobody", "g")
    ]
    client.send(requests.request(ApiKey.OFFSET_FETCH, version, hot.OffsetFetchRequest(groups=wanted)))
    (frame,) = client.answers()
    groups = requests.answer(ApiKey.OFFSET_FETCH, version, frame).groups
    assert [(group.group_id, len(group.topics)) for group in groups] == [
        ("nobody", 0),
        ("g", 1),
        ("nobody", 0),
        ("g", 1),
    ]


@every_fetch
async def test_offsets_of_a_topic_that_was_deleted_meanwhile_are_gone(
    edge: Edge, client: Client, version: int
) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5}, OTHER_TOPIC: {0: 6}})
    list(edge.manager.delete_offsets_of_topics(frozenset({OTHER_TOPIC})))
    assert fetch(edge, client, version, {TOPIC: [0], OTHER_TOPIC: [0]}) == {
        TOPIC: {0: (5, -1, "", 0)},
        OTHER_TOPIC: {0: (-1, -1, "", 0)},
    }


# --- deleting ---


def delete(client: Client, topics: dict[str, list[int]], group: str = "g") -> Any:
    """Send OffsetDelete v0."""
    topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
    message = OffsetDeleteRequest(
        group_id=group,
        topics=[
            topic_class(
                name=name,
                partitions=[topic_class.OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in topics.items()
        ],
    )
    client.send(requests.request(ApiKey.OFFSET_DELETE, 0, message))
    (frame,) = client.answers()
    return requests.answer(ApiKey.OFFSET_DELETE, 0, frame)


def errors(answer: Any) -> dict[str, dict[int, int]]:
    return {
        topic.name: {p.partition_index: p.error_code for p in topic.partitions} for topic in answer.topics
    }


async def test_deleted_offsets_are_gone_and_those_that_never_were_are_fine(
    edge: Edge, client: Client
) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5, 1: 6}, OTHER_TOPIC: {0: 7}})
    answer = delete(client, {TOPIC: [1, 2], OTHER_TOPIC: [0], "nowhere": [0]})
    assert answer.error_code == NONE
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(answer) == {TOPIC: {1: 0, 2: 0}, OTHER_TOPIC: {0: 0}, "nowhere": {0: unknown}}
    assert fetch(edge, client, 7, None) == {TOPIC: {0: (5, -1, "", 0)}}
    assert edge.stats.offset_deletions == 2
    assert len(edge.records) == 2, "tombstones only for what was there"


async def test_a_repeated_partition_is_deleted_once(edge: Edge, client: Client) -> None:
    commit(edge, client, 8, {TOPIC: {0: 5}})
    answer = delete(client, {TOPIC: [0, 0]})
    assert [p.error_code for p in answer.topics[0].partitions] == [0, 0]
    assert len(edge.records) == edge.stats.offset_deletions == 1


async def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(edge: Edge, client: Client) -> None:
    answer = delete(client, {TOPIC: [0]})
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.topics == []


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
async def test_members_keep_offsets_from_being_deleted(
    edge: Edge, client: Client, protocol_type: str
) -> None:
    message = hot.JoinGroupRequest(
        group_id=GroupId("g"),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type=protocol_type,
        protocols=[
            # a subscription to `orders` (ConsumerProtocolSubscription v0)
            hot.JoinGroupRequestProtocol("range", b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff")
        ],
    )
    client.send(requests.request(ApiKey.JOIN_GROUP, 3, message))
    joined = requests.answer(ApiKey.JOIN_GROUP, 3, client.answers()[0])
    client.send(requests.sync("g", joined.member_id, 1, assignments={joined.member_id: b""}))
    client.answers()
    who = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    commit(edge, client, 8, {TOPIC: {0: 5}, OTHER_TOPIC: {0: 6}}, **who)
    answer = delete(client, {TOPIC: [0], OTHER_TOPIC: [0]})
    if protocol_type == "consumer":
        subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert errors(answer) == {TOPIC: {0: subscribed}, OTHER_TOPIC: {0: 0}}
        assert set(fetch(edge, client, 7, None)) == {TOPIC}
    else:
        assert (answer.error_code, answer.topics) == (ErrorCode.NON_EMPTY_GROUP, [])
        assert set(fetch(edge, client, 7, None)) == {TOPIC, OTHER_TOPIC}
