# SPDX-License-Identifier: Apache-2.0
"""Commits of many offsets are looked at in steps, with others served between them, and stored whole or not at all."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.topics import Draft
from coordinator.tickets import DurabilityTicket
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, MemberId, Offset, Partition
from storage.format.records import TopicOffsetCommits
from storage.journal.journal import Entry
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
            draft.add_topic(name, partitions, topic_id=store.new_topic_id())

    store.submit_edit_with_callback(change, lambda _outcome: None)
    edge.thread.run_all()


def narrow(count: int) -> list[str]:
    return [f"narrow-{number}" for number in range(count)]


def rows(
    count: int, metadata: Callable[[int], str] = lambda _index: ""
) -> list[hot.OffsetCommitRequestPartition]:
    return [
        hot.OffsetCommitRequestPartition(index, Offset(index + 1), committed_metadata=metadata(index))
        for index in range(count)
    ]


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


async def until_looked_at(edge: Edge) -> None:
    """Return when a long commit is decoded, and some of its parts were looked at, but not all."""
    handled = edge.stats.apis[ApiKey.OFFSET_COMMIT]
    before = handled.handled
    for _ in range(10_000):
        if handled.handled > before:
            break
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert stored(edge) == 0


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
async def test_it_is_stored_in_one_append(edge: Edge, topics: list[hot.OffsetCommitRequestTopic]) -> None:
    client = edge.connect()
    appends: list[int] = []
    take = edge.append_offsets

    def append_offsets(commits: list[TopicOffsetCommits]) -> DurabilityTicket:
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
    assert appends == [total]
    assert edge.stats.offset_commits == total


async def test_others_are_served_while_it_is_looked_at(edge: Edge) -> None:
    client, other = edge.connect(), edge.connect()
    client.send(request(wide()))
    await until_looked_at(edge)
    other.send(requests.commit("other", {0: 1}))
    await turns_until_answered(other)
    assert stored(edge) == 1
    assert client.answers() == []


@pytest.mark.parametrize("repeated", [[0], [250], [0, 8_999]], ids=str)
async def test_the_last_of_two_offsets_of_a_partition_counts(edge: Edge, repeated: list[int]) -> None:
    """And its metadata, wherever the two stand."""
    client = edge.connect()
    topic = hot.OffsetCommitRequestTopic(
        name=WIDE, partitions=rows(PARTITIONS, lambda index: "before" if index in (0, 8_999) else "")
    )
    again = [
        hot.OffsetCommitRequestPartition(i, Offset(70_000), committed_metadata="later") for i in repeated
    ]
    topic.partitions.extend(again)
    client.send(request([topic]))
    (answered,) = (await answer(client)).topics
    assert [part.partition_index for part in answered.partitions] == [*range(PARTITIONS), *repeated]
    assert {part.error_code for part in answered.partitions} == {0}
    expected = {(WIDE, index): index + 1 for index in range(PARTITIONS)}
    assert committed(edge) == expected | {(WIDE, index): 70_000 for index in repeated}
    kept = edge.manager.find(GroupId("g"))
    assert kept is not None
    texts = [value.metadata for _, _, value in kept.offsets.all()]
    assert kept.offsets.metadata_bytes == sum(map(len, texts)) == edge.manager.env.usage.offset_metadata_bytes


async def test_what_is_too_long_for_one_batch_is_refused_whole(edge: Edge) -> None:
    client = edge.connect()
    topics = [hot.OffsetCommitRequestTopic(name=WIDE, partitions=rows(PARTITIONS)) for _ in range(3)]
    client.send(request(topics))
    answered = (await answer(client)).topics
    codes = [part.error_code for topic in answered for part in topic.partitions]
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3 * PARTITIONS
    assert stored(edge) == 0
    assert classic(edge.manager, "g") is None
    assert edge.stats.errors[ApiKey.OFFSET_COMMIT, ErrorCode.UNKNOWN_SERVER_ERROR] == 3 * PARTITIONS


async def test_together_they_need_exactly_what_one_batch_has(tmp_path: Path) -> None:
    """At the byte; what needs one byte more is refused."""
    partitions = rows(1_000, lambda index: "m" * (index % 3))
    topics = [hot.OffsetCommitRequestTopic(name=WIDE, partitions=partitions)]

    async def answered(batch_bytes_max: int) -> tuple[set[int], list[Entry]]:
        edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=batch_bytes_max)
        create(edge, {WIDE: PARTITIONS})
        client = edge.connect()
        client.send(request(topics))
        (topic,) = (await answer(client)).topics
        return {part.error_code for part in topic.partitions}, edge.log.entries

    errors, (entry,) = await answered(1 << 20)
    assert errors == {0}
    needed = len(entry.batch)
    assert await answered(needed) == ({0}, [entry])
    assert await answered(needed - 1) == ({ErrorCode.UNKNOWN_SERVER_ERROR}, [])


async def test_the_commit_of_a_member_that_leaves_meanwhile_is_refused_whole(edge: Edge) -> None:
    member, client, other = edge.connect(), edge.connect(), edge.connect()
    member.send(requests.join("g", version=3))
    await settle()
    joined = requests.answer(ApiKey.JOIN_GROUP, 3, member.answers()[0])
    member.send(requests.sync("g", joined.member_id, joined.generation_id))
    await settle()
    client.send(request(wide(), member_id=joined.member_id, generation=joined.generation_id))
    await until_looked_at(edge)
    other.send(requests.leave("g", joined.member_id))
    (topic,) = (await answer(client)).topics
    assert [part.partition_index for part in topic.partitions] == list(range(PARTITIONS))
    assert {part.error_code for part in topic.partitions} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert stored(edge) == 0


async def test_nothing_is_stored_where_the_partition_is_lost_meanwhile(edge: Edge) -> None:
    client = edge.connect()
    client.send(request(wide()))
    await until_looked_at(edge)
    appended = len(edge.commits)
    edge.manager.remove_groups_for_partition(Partition(0))
    (topic,) = (await answer(client)).topics
    assert len(edge.commits) == appended
    assert [part.error_code for part in topic.partitions] == [ErrorCode.NOT_COORDINATOR] * PARTITIONS


async def test_a_flush_that_fails_fails_all_of_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, flush_by_itself=False)
    create(edge, {WIDE: PARTITIONS})
    client = edge.connect()
    client.send(request(wide()))
    await until_stored(edge, PARTITIONS)
    assert client.answers() == []
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
    assert edge.budget.total_bytes == 0


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_topic_that_is_deleted_meanwhile_gets_no_offsets(edge: Edge, made_anew: bool) -> None:
    client = edge.connect()
    topics = [hot.OffsetCommitRequestTopic(name="narrow-1", partitions=rows(1)), *wide(5_000)]
    client.send(request(topics))
    await until_looked_at(edge)
    edge.node.catalogue_store.submit_edit_with_callback(
        lambda draft: draft.remove_topic("narrow-1"), lambda _outcome: None
    )
    edge.thread.run_all()
    if made_anew:
        create(edge, {"narrow-1": 1})
    answered = (await answer(client)).topics
    assert {part.error_code for topic in answered for part in topic.partitions} == {0}
    assert ("narrow-1", 0) not in committed(edge)
    assert len(committed(edge)) == 5_000


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
