# SPDX-License-Identifier: Apache-2.0
"""A topic that a client names and the catalogue lacks is looked for: a cluster behind the node may have it by now."""

from typing import Any

import pytest

from coordinator.api.offset_fetch_long import answer_in_slices
from protocol.apis import ApiKey
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.kafka_python_messages import OffsetDeleteRequest
from protocol.newtypes import GroupId, MemberId, Offset
from tests.api.asking import Answers, FakeNode

NO_NODE = MemberId("")
ID = bytes(15) + b"m"


def fetch_by_id(topic_id: bytes) -> OffsetFetchRequest:
    """An OffsetFetch from v10 on."""
    topics = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GroupId("g"), topics=topics)])


def fetch_by_name(topic: str, *partitions: int, version: int = 8) -> OffsetFetchRequest:
    """An OffsetFetch up to v9."""
    if version < 8:
        named = [OffsetFetchRequestTopic(topic, list(partitions))]
        return OffsetFetchRequest(group_id=GroupId("g"), topics=named)
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GroupId("g"), topics=topics)])


def commit_to(topic: OffsetCommitRequestTopic) -> OffsetCommitRequest:
    """A standalone consumer's."""
    return OffsetCommitRequest(group_id=GroupId("g"), member_id=NO_NODE, topics=[topic])


def delete(topic: str, partition: int) -> OffsetDeleteRequest:
    """An OffsetDelete of one partition."""
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    rows = [kind.OffsetDeleteRequestPartition(partition_index=partition)]
    return OffsetDeleteRequest(group_id="g", topics=[kind(name=topic, partitions=rows)])


def partition(index: int) -> OffsetCommitRequestPartition:
    """A partition of a commit."""
    return OffsetCommitRequestPartition(partition_index=index, committed_offset=Offset(1))


MISSING: list[tuple[ApiKey, int, Any, str | bytes]] = [
    (ApiKey.OFFSET_COMMIT, 8, commit_to(OffsetCommitRequestTopic(name="missing")), "missing"),
    (ApiKey.OFFSET_COMMIT, 10, commit_to(OffsetCommitRequestTopic(topic_id=ID)), ID),
    (
        ApiKey.OFFSET_COMMIT,
        8,
        commit_to(OffsetCommitRequestTopic("there", partitions=[partition(3)])),
        "there",
    ),
    (ApiKey.OFFSET_FETCH, 10, fetch_by_id(ID), ID),
    (ApiKey.OFFSET_FETCH, 7, fetch_by_name("missing", 0, version=7), "missing"),
    (ApiKey.OFFSET_FETCH, 9, fetch_by_name("missing", 0), "missing"),
    (ApiKey.OFFSET_FETCH, 9, fetch_by_name("there", 2, 3), "there"),
    (ApiKey.OFFSET_DELETE, 0, delete("missing", 0), "missing"),
    (ApiKey.OFFSET_DELETE, 0, delete("there", 3), "there"),
]


@pytest.mark.parametrize(("key", "version", "request_", "topic"), MISSING)
def test_a_topic_or_partition_that_is_missing_is_looked_for(
    node: FakeNode, key: ApiKey, version: int, request_: Any, topic: str | bytes
) -> None:
    looked: list[str | bytes] = []
    node.have(there=3)
    node.groups.commit("g", "there", {0: 5})
    node.catalogue_store.look_for = looked.append
    node.ask(key, version, request_)
    assert looked == [topic]


def test_a_long_question_has_it_looked_for_too(node: FakeNode) -> None:
    looked: list[str | bytes] = []
    answers = Answers(ApiKey.OFFSET_FETCH, 10)
    ctx = node.start(answers, fetch_by_id(ID))
    node.catalogue_store.look_for = looked.append
    asked: Any = node
    answer_in_slices(asked, ctx.request, ctx)
    assert looked == [ID]
    assert answers.bodies[0] == answers.bodies[1]


PRESENT: list[tuple[ApiKey, int, Any]] = [
    (ApiKey.OFFSET_COMMIT, 8, commit_to(OffsetCommitRequestTopic("there", partitions=[partition(2)]))),
    (ApiKey.OFFSET_FETCH, 7, fetch_by_name("there", 0, 2, version=7)),
    (ApiKey.OFFSET_FETCH, 9, fetch_by_name("there", 0, 2)),
    (ApiKey.OFFSET_DELETE, 0, delete("there", 2)),
]


@pytest.mark.parametrize(("key", "version", "request_"), PRESENT)
def test_nothing_is_looked_for_where_all_is_there(
    node: FakeNode, key: ApiKey, version: int, request_: Any
) -> None:
    looked: list[str | bytes] = []
    topics = node.have(there=3)
    node.groups.commit("g", "there", {0: 5})
    node.catalogue_store.look_for = looked.append
    node.ask(key, version, request_)
    node.ask(ApiKey.OFFSET_FETCH, 10, fetch_by_id(topics["there"].id))
    assert looked == []
