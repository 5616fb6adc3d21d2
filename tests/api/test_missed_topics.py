# SPDX-License-Identifier: Apache-2.0
"""A topic that a client names and the catalogue lacks is looked for: a cluster behind the node may have it by now."""

from typing import Any

import pytest

from coordinator.api.offset_fetch_long import answer_in_slices
from protocol.apis import ApiKey
from protocol.hot.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.names import GroupId, MemberId
from tests.api.asking import Answers, FakeNode

NOBODY = MemberId("")


def fetch_by_id(topic_id: bytes) -> OffsetFetchRequest:
    """An OffsetFetch from v10 on."""
    topics = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GroupId("g"), topics=topics)])


def commit_to(topic: OffsetCommitRequestTopic) -> OffsetCommitRequest:
    """A standalone consumer's."""
    return OffsetCommitRequest(group_id=GroupId("g"), member_id=NOBODY, topics=[topic])


MISSING: list[tuple[ApiKey, int, Any]] = [
    (ApiKey.OFFSET_COMMIT, 8, commit_to(OffsetCommitRequestTopic(name="missing", partitions=[]))),
    (ApiKey.OFFSET_COMMIT, 10, commit_to(OffsetCommitRequestTopic(topic_id=bytes(15) + b"m", partitions=[]))),
    (ApiKey.OFFSET_FETCH, 10, fetch_by_id(bytes(15) + b"m")),
]


@pytest.mark.parametrize(("key", "version", "request_"), MISSING)
def test_a_topic_that_is_missing_is_looked_for(
    node: FakeNode, key: ApiKey, version: int, request_: Any
) -> None:
    looked: list[str] = []
    node.catalogue_store.on_missed = lambda: looked.append("looked")
    node.ask(key, version, request_)
    assert looked == ["looked"]


def test_a_long_question_has_it_looked_for_too(node: FakeNode) -> None:
    looked: list[str] = []
    answers = Answers(ApiKey.OFFSET_FETCH, 10)
    ctx = node.start(answers, fetch_by_id(bytes(15) + b"m"))
    node.catalogue_store.on_missed = lambda: looked.append("looked")
    asked: Any = node
    answer_in_slices(asked, ctx.request, ctx)
    assert looked == ["looked"]
    assert answers.bodies[0] == answers.bodies[1]


def test_nothing_is_looked_for_where_all_is_there(node: FakeNode) -> None:
    looked: list[str] = []
    node.catalogue_store.on_missed = lambda: looked.append("looked")
    node.ask(ApiKey.OFFSET_FETCH, 10, fetch_by_id(node.have(there=1)["there"].id))
    assert looked == []
