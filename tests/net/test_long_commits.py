# SPDX-License-Identifier: Apache-2.0
"""Commits of many offsets are stored part by part, with others served between the parts."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from coordinator.api.long_commits import ANSWERED_AT_ONCE, ITEMS_PER_PART, fit_together, parts
from coordinator.catalogue.topics import Draft
from coordinator.config import Settings
from coordinator.tickets import Ticket
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.names import GroupId, LeaderEpoch, MemberId, Offset, Partition
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, OffsetCommits
from tests.net import requests
from tests.net.edge import Client, Edge, settle, turns_until_answered
from tests.support.groups import classic

WIDE = "wide"
PARTITIONS = 9_000
A_STEP_A_TURN = 0


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    """A node that does one step of long work in a turn, with a topic of many partitions and many narrow ones."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    create(edge, {WIDE: PARTITIONS} | dict.fromkeys(narrow(1_000), 1))
    return edge


def create(edge: Edge, topics: dict[str, int]) -> None:
    store = edge.node.catalogue_store

    def change(draft: Draft) -> None:
        for name, partitions in topics.items():
            draft.create(name, partitions, topic_id=store.new_topic_id())

    store.change(change, lambda _outcome: None)
    edge.thread.run_all()


def narrow(count: int) -> list[str]:
    return [f"narrow-{number}" for number in range(count)]


def rows(count: int) -> list[hot.OffsetCommitRequestPartition]:
    return [hot.OffsetCommitRequestPartition(index, Offset(index + 1)) for index in range(count)]


def request(
    topics: list[hot.OffsetCommitRequestTopic],
    group: str = "g",
    member_id: str = "",
    generation: int = -1,
    version: int = 8,
) -> bytes:
    message = hot.OffsetCommitRequest(
        group_id=GroupId(group),
        member_id=MemberId(member_id),
        generation_id_or_member_epoch=generation,
        topics=topics,
    )
    return requests.request(ApiKey.OFFSET_COMMIT, version, message)


def wide(count: int = PARTITIONS) -> list[hot.OffsetCommitRequestTopic]:
    return [hot.OffsetCommitRequestTopic(name=WIDE, partitions=rows(count))]


async def answer(client: Client, version: int = 8) -> Any:
    for _ in range(10_000):
        frames = client.answers()
        if frames:
            return requests.answer(ApiKey.OFFSET_COMMIT, version, frames[0])
        await asyncio.sleep(0)
    raise AssertionError("no answer")


async def until_stored(edge: Edge, count: int) -> None:
    for _ in range(10_000):
        if stored(edge) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError("too little is stored")


def stored(edge: Edge) -> int:
    return sum(
        kept.offsets.count
        for shard in edge.manager.owned_partitions.values()
        for kept in shard.groups.values()
    )


def committed(edge: Edge, group_id: str = "g") -> dict[tuple[str, int], int]:
    kept = edge.manager.find(GroupId(group_id))
    assert kept is not None
    return {(topic, partition): value.offset for topic, partition, value in kept.offsets.all()}


MANY = [
    *wide(50),
    *[hot.OffsetCommitRequestTopic(name=name, partitions=rows(1)) for name in narrow(1_000)],
]


@pytest.mark.parametrize("topics", [wide(), MANY], ids=["wide", "many"])
async def test_it_is_stored_and_answered_in_parts(
    edge: Edge, topics: list[hot.OffsetCommitRequestTopic]
) -> None:
    client = edge.connect()
    appends: list[int] = []
    take = edge.append_offsets

    def append_offsets(commits: list[OffsetCommits]) -> Ticket:
        appends.append(sum(len(some.values) for some in commits))
        return take(commits)

    edge.append_offsets = append_offsets  # type: ignore[method-assign]
    client.send(request(topics))
    answered = (await answer(client)).topics
    total = sum(len(topic.partitions) for topic in topics)
    assert [topic.name for topic in answered] == [topic.name for topic in topics]
    assert [[part.partition_index for part in topic.partitions] for topic in answered] == [
        [part.partition_index for part in topic.partitions] for topic in topics
    ]
    assert {part.error_code for topic in answered for part in topic.partitions} == {0}
    assert committed(edge) == {
        (topic.name, part.partition_index): part.committed_offset
        for topic in topics
        for part in topic.partitions
    }
    assert sum(appends) == total
    assert max(appends) < ITEMS_PER_PART
    assert edge.stats.offset_commits == total


async def test_others_are_served_between_the_parts(edge: Edge) -> None:
    client, other = edge.connect(), edge.connect()
    client.send(request(wide()))
    await until_stored(edge, 500)
    other.send(requests.commit("other", {0: 1}))
    await turns_until_answered(other)
    assert client.answers() == []


async def test_what_is_too_long_for_one_batch_is_refused_whole(edge: Edge) -> None:
    client = edge.connect()
    topics = [hot.OffsetCommitRequestTopic(name=WIDE, partitions=rows(PARTITIONS)) for _ in range(3)]
    client.send(request(topics))
    answered = (await answer(client)).topics
    codes = [part.error_code for topic in answered for part in topic.partitions]
    assert codes == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 3 * PARTITIONS
    assert stored(edge) == 0
    assert classic(edge.manager, "g") is None
    assert edge.stats.errors[ApiKey.OFFSET_COMMIT, ErrorCode.INVALID_COMMIT_OFFSET_SIZE] == 3 * PARTITIONS


@pytest.mark.parametrize("version", [3, 4])
def test_together_they_need_exactly_what_one_batch_has(version: int, tmp_path: Path) -> None:
    """In parts as at once, at the byte."""
    values = {index: OffsetAndMetadata(Offset(index), -1, "m" * (index % 3), 0) for index in range(500)}
    whole = [OffsetCommits(GroupId("g"), f"t{number}", dict(values)) for number in range(3)]
    builder = BatchBuilder(1 << 20, version)
    builder.append_offsets(whole)
    (batch,) = builder.build(Offset(0), LeaderEpoch(0), 0)
    for bytes_max, expected in (
        (len(batch), ErrorCode.NONE),
        (len(batch) - 1, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ):
        settings = Settings(data_dir=tmp_path, message_max_bytes=bytes_max, offsets_value_version=version)  # type: ignore[arg-type]
        assert result(fit_together(settings, [[some] for some in whole])) == expected


def result(work: Generator[None, None, ErrorCode]) -> ErrorCode:
    try:
        while True:
            next(work)
    except StopIteration as done:
        code: ErrorCode = done.value
        return code


async def test_a_member_that_leaves_between_the_parts_has_committed_what_it_is_told(edge: Edge) -> None:
    member, client, other = edge.connect(), edge.connect(), edge.connect()
    member.send(requests.join("g", version=3))
    await settle()
    joined = requests.answer(ApiKey.JOIN_GROUP, 3, member.answers()[0])
    member.send(requests.sync("g", joined.member_id, joined.generation_id))
    await settle()
    client.send(request(wide(), member_id=joined.member_id, generation=joined.generation_id))
    await until_stored(edge, 1_000)
    other.send(requests.leave("g", joined.member_id))
    (topic,) = (await answer(client)).topics
    codes = {part.partition_index: part.error_code for part in topic.partitions}
    taken = [index for index, code in codes.items() if code == 0]
    assert list(codes) == list(range(PARTITIONS))
    assert 1_000 <= len(taken) < PARTITIONS
    assert set(codes.values()) == {0, ErrorCode.UNKNOWN_MEMBER_ID}
    assert committed(edge) == {(WIDE, index): index + 1 for index in taken}


async def test_what_is_left_when_the_partition_is_lost_is_refused(edge: Edge) -> None:
    client = edge.connect()
    client.send(request(wide()))
    await until_stored(edge, 1_000)
    edge.manager.unloading.at_once = 0
    before = stored(edge)
    appended = len(edge.commits)
    edge.manager.remove_groups_for_partition(Partition(0))
    (topic,) = (await answer(client)).topics
    assert len(edge.commits) == appended
    assert [part.error_code for part in topic.partitions] == [0] * before + [ErrorCode.NOT_COORDINATOR] * (
        PARTITIONS - before
    )


async def test_a_flush_that_fails_between_the_parts_fails_all_of_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, flush_by_itself=False)
    create(edge, {WIDE: PARTITIONS})
    client = edge.connect()
    client.send(request(wide()))
    await until_stored(edge, 1_000)
    edge.fail_flush()
    (topic,) = (await answer(client)).topics
    assert [part.error_code for part in topic.partitions] == [ErrorCode.NOT_COORDINATOR] * PARTITIONS


async def test_what_a_failed_flush_refuses_is_refused_in_turns(tmp_path: Path) -> None:
    """Large answers that wait for the disk, and small ones of many connections."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, flush_by_itself=False)
    create(edge, {WIDE: PARTITIONS})
    large, small = edge.connect(), [edge.connect() for _ in range(50)]
    large.send(request(wide()))
    await until_stored(edge, PARTITIONS)
    for _ in range(2_000):
        await asyncio.sleep(0)
    for client in small:
        client.send(requests.commit("other", {0: 1}))
    for _ in small:
        await settle()
    edge.fail_flush()
    assert all(client.answers() == [] for client in (large, *small))
    turns = 0
    waiting = {large, *small}
    while waiting:
        await asyncio.sleep(0)
        answered = {client for client in waiting if client.transport.sent}
        assert len(answered) <= 1
        waiting -= answered
        turns += 1
        assert turns < 10_000
    assert turns > 50 + PARTITIONS // 100
    for client in (large, *small):
        (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, 8, client.answers()[0]).topics
        assert {part.error_code for part in topic.partitions} == {ErrorCode.NOT_COORDINATOR}
    assert edge.stats.errors[ApiKey.OFFSET_COMMIT, ErrorCode.NOT_COORDINATOR] == PARTITIONS + 50
    assert edge.unsent.total_bytes == 0


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_topic_that_is_deleted_between_the_parts_gets_no_offsets(edge: Edge, made_anew: bool) -> None:
    client = edge.connect()
    topics = [*wide(1_000), hot.OffsetCommitRequestTopic(name="narrow-1", partitions=rows(1))]
    client.send(request(topics))
    await until_stored(edge, 100)
    edge.node.catalogue_store.change(lambda draft: draft.delete("narrow-1"), lambda _outcome: None)
    edge.thread.run_all()
    if made_anew:
        create(edge, {"narrow-1": 1})
    answered = (await answer(client)).topics
    assert {part.error_code for topic in answered for part in topic.partitions} == {0}
    assert ("narrow-1", 0) not in committed(edge)
    assert len(committed(edge)) == 1_000


@pytest.mark.parametrize("version", [2, 7, 8, 10])
async def test_long_answers_are_those_that_short_ones_are_made_of(version: int, edge: Edge) -> None:
    """What does not exist comes first, each topic once."""
    client = edge.connect()
    ids = {name: topic.id for name in (WIDE, "narrow-1") if (topic := edge.node.catalogue.get(name))}
    topics = [
        hot.OffsetCommitRequestTopic(name=WIDE, topic_id=ids[WIDE], partitions=rows(PARTITIONS + 3)),
        hot.OffsetCommitRequestTopic(name="gone", topic_id=b"gone" * 4, partitions=rows(300)),
        hot.OffsetCommitRequestTopic(name="narrow-1", topic_id=ids["narrow-1"], partitions=rows(1)),
    ]
    assert PARTITIONS > ANSWERED_AT_ONCE
    client.send(request(topics, version=version))
    answered = (await answer(client, version)).topics
    assert len(answered) == 3
    for told, asked in zip(answered, topics, strict=True):
        assert told.topic_id == asked.topic_id if version >= 10 else told.name == asked.name
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(part.partition_index, part.error_code) for part in answered[0].partitions] == [
        (index, missing) for index in range(PARTITIONS, PARTITIONS + 3)
    ] + [(index, 0) for index in range(PARTITIONS)]
    assert [part.error_code for part in answered[1].partitions] == [unknown] * 300
    assert edge.stats.errors[ApiKey.OFFSET_COMMIT, unknown] >= 300


def test_parts_hold_all_of_it_in_order() -> None:
    topics = [
        hot.OffsetCommitRequestTopic(name="none"),
        hot.OffsetCommitRequestTopic(name="long", partitions=rows(1_000)),
        *[hot.OffsetCommitRequestTopic(name=name, partitions=rows(3)) for name in narrow(100)],
    ]
    cut = list(parts(topics))
    assert all(sum(1 + len(topic.partitions) for _, topic in part) <= ITEMS_PER_PART for part in cut)
    together: dict[int, list[int]] = {}
    for part in cut:
        for place, topic in part:
            assert topic.name == topics[place].name
            together.setdefault(place, []).extend(row.partition_index for row in topic.partitions)
    assert list(together) == list(range(len(topics)))
    assert [together[place] for place in together] == [
        [row.partition_index for row in topic.partitions] for topic in topics
    ]
