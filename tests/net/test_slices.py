# SPDX-License-Identifier: Apache-2.0
"""Long requests and long answers are worked on in slices: counted in steps and turns, never in time."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.api import slices
from coordinator.api.table import Capabilities
from coordinator.catalogue.topic_configs import END_GROUP
from coordinator.catalogue.topics import Draft
from coordinator.node import CommittedEndOffset, EndsByTopic, Partitions
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetDeleteRequest,
    ProduceRequest,
)
from protocol.newtypes import GroupId, Offset, Partition
from protocol.stepwise_message_writer import PIECE_BYTES
from storage.format.batch import iter_records
from storage.format.records import OffsetAndMetadata, TopicOffsetCommits
from tests.net import requests
from tests.net.edge import WRITE_BUFFER_MAX, Client, Edge, settle, turns_until_answered
from tests.support.apis import APIS
from tests.support.groups import classic
from tests.support.ids import new_topic_id

A_STEP_A_TURN = 0
"""Each turn is over at once, so that one step is done in it."""
STEP_ITEMS = 100
"""No step reads, makes or writes more."""


SMALL_BATCH = 6_000
"""Has room for 300 tombstones."""


def many_groups(edge: Edge, count: int, *, offsets: int = 0) -> None:
    shard = edge.manager.owned_partitions[Partition(0)]
    values = {index: OffsetAndMetadata(Offset(index), -1, "", 0, None) for index in range(offsets)}
    for number in range(count):
        shard.add_or_get_existing(shard.make_uncached_group(GroupId(f"g{number}")))
        if offsets:
            shard.apply(TopicOffsetCommits(GroupId(f"g{number}"), requests.TOPIC, dict(values)))


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


async def until_appended(edge: Edge) -> None:
    """Wait for the first step that appends something."""
    for _ in range(1_000):
        if edge.records:
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing was appended")


def metadata(topics: list[str] | None) -> Any:
    kind = MetadataRequest.MetadataRequestTopic
    wanted = None if topics is None else [kind(version=9, name=name) for name in topics]
    return MetadataRequest(version=9, topics=wanted, allow_auto_topic_creation=False)


def list_offsets() -> Any:
    kind = ListOffsetsRequest.ListOffsetsTopic
    rows = [
        kind.ListOffsetsPartition(version=5, partition_index=index, current_leader_epoch=-1, timestamp=-1)
        for index in range(1000)
    ]
    return ListOffsetsRequest(version=5, replica_id=-1, topics=[kind(version=5, name="t", partitions=rows)])


def fetch(max_wait_ms: int, partitions: int = 1000) -> Any:
    kind = FetchRequest.FetchTopic
    rows = [
        kind.FetchPartition(
            version=11, partition=index % 100, fetch_offset=0, partition_max_bytes=1, current_leader_epoch=-1
        )
        for index in range(partitions)
    ]
    return FetchRequest(
        version=11,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=-1,
        topics=[kind(version=11, topic=requests.TOPIC, partitions=rows)],
        forgotten_topics_data=[],
    )


def produce() -> Any:
    kind = ProduceRequest.TopicProduceData
    rows = [kind.PartitionProduceData(version=8, index=index, records=b"") for index in range(1000)]
    return ProduceRequest(version=8, acks=1, topic_data=[kind(version=8, name="t", partition_data=rows)])


LONG_REQUESTS: dict[str, tuple[ApiKey, int, Any]] = {
    "find coordinator": (
        ApiKey.FIND_COORDINATOR,
        4,
        FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=names(1000)),
    ),
    "describe groups": (ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(version=5, groups=names(1000))),
    "metadata": (ApiKey.METADATA, 9, metadata(names(1000))),
    "list offsets": (ApiKey.LIST_OFFSETS, 5, list_offsets()),
    "fetch": (ApiKey.FETCH, 11, fetch(max_wait_ms=0)),
    "produce": (ApiKey.PRODUCE, 8, produce()),
    "delete groups": (ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(version=2, groups_names=names(1000))),
    "offset delete": (
        ApiKey.OFFSET_DELETE,
        0,
        OffsetDeleteRequest(
            version=0,
            group_id="g0",
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    version=0,
                    name=requests.TOPIC,
                    partitions=[
                        OffsetDeleteRequest.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition(
                            version=0, partition_index=index % 200
                        )
                        for index in range(1000)
                    ],
                )
            ],
        ),
    ),
}


@pytest.mark.parametrize("name", LONG_REQUESTS)
async def test_a_long_request_takes_a_turn_for_every_hundred_items(name: str, tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1)
    client = edge.connect()
    client.send(requests.request(*LONG_REQUESTS[name]))
    turns, _ = await turns_until_answered(client)
    assert turns >= 2 * 1000 // STEP_ITEMS  # it is read in steps, and answered in steps


async def test_a_long_poll_waits_and_is_then_answered_in_slices(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    client = edge.connect()
    client.send(requests.request(ApiKey.FETCH, 11, fetch(max_wait_ms=500)))
    for _ in range(10):
        await settle()
    assert client.answers() == []
    edge.timers.advance(500)
    turns, frame = await turns_until_answered(client)
    assert turns >= 1000 // STEP_ITEMS
    (topic,) = requests.answer(ApiKey.FETCH, 11, frame).responses
    assert [part.error_code for part in topic.partitions] == [0] * 1000


async def test_many_topics_in_one_commit_are_decided_in_slices_and_stored_together(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, flush_by_itself=False)
    client = edge.connect()
    row = [hot.OffsetCommitRequestPartition(3, Offset(7))]
    topics = [hot.OffsetCommitRequestTopic(name=requests.TOPIC, partitions=row)] + [
        hot.OffsetCommitRequestTopic(name=name, partitions=row) for name in names(2_000)
    ]
    client.send(
        requests.request(
            ApiKey.OFFSET_COMMIT, 8, hot.OffsetCommitRequest(group_id=GroupId("new"), topics=topics)
        )
    )
    for _ in range(5):
        await settle()
    assert client.answers() == []  # it waits for its flush
    edge.flush()
    _, frame = await turns_until_answered(client)
    answered = requests.answer(ApiKey.OFFSET_COMMIT, 8, frame).topics
    codes = {topic.name: topic.partitions[0].error_code for topic in answered}
    assert codes[requests.TOPIC] == ErrorCode.NONE
    assert len(codes) == 2_001
    assert {codes[name] for name in names(2_000)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    kept = edge.manager.find(GroupId("new"))
    assert kept is not None
    assert kept.offsets.by_topic[requests.TOPIC][3].offset == 7


def change_topics(edge: Edge, edit: Callable[[Draft], None]) -> None:
    edge.node.catalogue_store.submit_edit_with_callback(edit, lambda _outcome: None)
    edge.thread.run_all()


async def test_all_topics_are_told_in_turns_each_as_it_is_when_its_turn_comes(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)

    def fill(draft: Draft) -> None:
        for number in range(3_000):
            draft.add_topic(f"many{number:04}", 1, topic_id=new_topic_id())

    change_topics(edge, fill)
    client = edge.connect()
    client.send(requests.request(ApiKey.METADATA, 9, metadata(None)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert client.answers() == []

    def delete_the_last(draft: Draft) -> None:
        draft.remove_topic("many2998")
        draft.remove_topic("many2999")

    change_topics(edge, delete_the_last)
    turns, frame = await turns_until_answered(client)
    assert turns >= 2_900 // STEP_ITEMS
    told = [topic.name for topic in requests.answer(ApiKey.METADATA, 9, frame).topics]
    assert told == [topic.name for topic in edge.node.catalogue]


async def test_listing_groups_takes_turns_and_gives_all_of_them(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 5_000)
    client = edge.connect()
    client.send(requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)))
    turns, frame = await turns_until_answered(client)
    assert turns >= 5_000 // STEP_ITEMS
    listed = requests.answer(ApiKey.LIST_GROUPS, 5, frame).groups
    assert [group.group_id for group in listed] == names(5_000)


async def test_a_list_from_which_a_partition_went_missing_is_an_error(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 5_000)
    client = edge.connect()
    client.send(requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert client.answers() == []
    edge.manager.remove_groups_for_partition(Partition(0))
    await settle()
    answer = requests.answer(ApiKey.LIST_GROUPS, 5, client.answers()[0])
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])


async def test_a_filter_that_matches_nothing_still_gives_way(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 5_000)
    client = edge.connect()
    client.send(
        requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5, states_filter=["Stable"]))
    )
    turns, frame = await turns_until_answered(client)
    assert turns >= 5_000 // STEP_ITEMS
    assert requests.answer(ApiKey.LIST_GROUPS, 5, frame).groups == []


def all_offsets(version: int, groups: int) -> bytes:
    message = (
        hot.OffsetFetchRequest(
            groups=[hot.OffsetFetchRequestGroup(group_id=GroupId("g0"), topics=None)] * groups
        )
        if version >= 8
        else hot.OffsetFetchRequest(group_id=GroupId("g0"), topics=None)
    )
    return requests.request(ApiKey.OFFSET_FETCH, version, message)


@pytest.mark.parametrize("version", range(2, 11))
async def test_many_offsets_are_told_in_slices_as_few_are_at_once(version: int, tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1, offsets=3_000)
    client = edge.connect()
    client.send(all_offsets(version, groups=3))
    turns, frame = await turns_until_answered(client)
    assert turns >= 3_000 // STEP_ITEMS
    answer = requests.answer(ApiKey.OFFSET_FETCH, version, frame)
    groups = answer.groups if version >= 8 else [answer]
    assert len(groups) == (3 if version >= 8 else 1)
    for group in groups:
        (topic,) = group.topics
        assert topic.name == (requests.TOPIC if version < 10 else "")
        found = [(part.partition_index, part.committed_offset, part.error_code) for part in topic.partitions]
        assert found == [(index, index, 0) for index in range(3_000)]


async def test_an_answer_that_would_be_too_long_is_an_error_before_it_is_made(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    many_groups(edge, 1, offsets=100_000)
    client = edge.connect()
    client.send(all_offsets(8, groups=50))  # 90 MB
    answer = requests.answer(ApiKey.OFFSET_FETCH, 8, client.answers()[0])
    assert {group.error_code for group in answer.groups} == {ErrorCode.POLICY_VIOLATION}
    assert edge.stats.oversized_answers == 1


async def test_an_answer_that_becomes_too_long_is_an_error(tmp_path: Path) -> None:
    edge = Edge(tmp_path, capabilities=Capabilities(APIS.values(), answer_bytes_max=10_000))
    many_groups(edge, 20_000)
    client = edge.connect()
    client.send(requests.request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4)))
    await settle()
    answer = requests.answer(ApiKey.LIST_GROUPS, 4, client.answers()[0])
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    assert edge.stats.oversized_answers == 1


async def test_others_are_served_between_the_slices(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 5_000)
    greedy = [edge.connect() for _ in range(10)]
    for client in greedy:
        client.send(requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)))
    for _ in range(20):
        await asyncio.sleep(0)
    modest = edge.connect()
    modest.send(requests.heartbeat("g1", "m", 1))
    turns, _ = await turns_until_answered(modest)
    assert turns <= 2
    assert not any(client.answers() for client in greedy)


async def test_work_for_a_connection_that_is_gone_is_dropped(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=3_000)
    client = edge.connect()
    steps = 0
    ended = []

    def work() -> Generator[None, None, Any]:
        nonlocal steps
        try:
            while True:
                steps += 1
                yield
        finally:
            ended.append(steps)

    client.send(requests.request(ApiKey.FETCH, 11, fetch(max_wait_ms=500, partitions=1)))
    await settle()
    ctx = client.connection._parked
    assert ctx is not None
    client.connection.run_in_slices(ctx, work())
    await until(lambda: steps > 5)
    await client.drop()
    at_the_end = steps
    await settle()
    assert (steps, ended) == (at_the_end, [at_the_end])


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until this is so: where work has no end the loop is never idle."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("gave up waiting")


async def park(client: Client) -> Any:
    """Let a request wait on this connection, as a handler does."""
    client.send(requests.join("waits", version=3))
    await settle()
    ctx = client.connection._parked
    assert ctx is not None
    return ctx


async def test_what_is_read_in_slices_waits_for_the_flush_of_all_of_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, flush_by_itself=False, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1_000)
    client, writer = edge.connect(), edge.connect()
    client.send(requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)))
    await asyncio.sleep(0)
    writer.send(requests.commit("g999", {0: 1}))
    for _ in range(100):
        await settle()
    assert client.answers() == []
    edge.flush()
    await settle()
    assert len(client.answers()) == 1


async def test_what_a_failed_flush_has_lost_is_not_told_by_the_slices_after_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, flush_by_itself=False, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1_000)
    client, writer = edge.connect(), edge.connect()
    writer.send(requests.commit("g0", {0: 1}))
    await settle()
    client.send(requests.request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4)))
    await settle()
    edge.fail_flush()
    await settle()
    (frame,) = client.answers()
    assert requests.answer(ApiKey.LIST_GROUPS, 4, frame).error_code == ErrorCode.NOT_COORDINATOR
    client.send(requests.api_versions(9))
    await settle()
    assert client.correlation_ids() == [9]


async def test_offsets_in_a_deleted_topic_are_dropped_in_steps(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    many_groups(edge, 3_000)
    many_groups(edge, 200, offsets=120)
    before = edge.stats.offset_deletions
    most = 0
    steps = 0
    for _ in edge.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})):
        steps += 1
        most = max(most, edge.stats.offset_deletions - before)
        before = edge.stats.offset_deletions
    assert most <= STEP_ITEMS
    assert steps >= 3_000 // 1_000 + 200 * 120 // STEP_ITEMS
    assert not any(kept.offsets.count for kept in edge.manager.current_groups())


class Walked(frozenset[str]):
    """Names of topics that count how often all of them are walked."""

    times = 0

    def __iter__(self) -> Iterator[str]:
        type(self).times += 1
        return super().__iter__()

    __or__ = __ror__ = __and__ = __rand__ = None  # type: ignore[assignment]  # each would walk them


async def test_no_group_and_no_partition_walks_all_deleted_topics(tmp_path: Path) -> None:
    """40,000 topics deleted at once cost 5 ms of one turn for each partition, and each group that had offsets."""
    edge = Edge(tmp_path)
    many_groups(edge, 200)
    Walked.times = 0
    gone = Walked({*(f"gone-{number}" for number in range(5_000)), requests.TOPIC})
    for _ in edge.manager.delete_offsets_of_topics(gone):
        pass
    assert Walked.times == 0
    assert not any(kept.offsets.count for kept in edge.manager.current_groups())


async def test_a_group_is_deleted_in_one_batch(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 2, offsets=3_000)
    client = edge.connect()
    message = DeleteGroupsRequest(version=2, groups_names=["g0", "g1"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, message))
    _, frame = await turns_until_answered(client)
    assert [each.error_code for each in requests.answer(ApiKey.DELETE_GROUPS, 2, frame).results] == [0, 0]
    assert [len(list(iter_records(entry.batch))) for entry in edge.log.entries] == [3_000, 3_000]
    assert edge.stats.offset_deletions == 6_000


async def test_offsets_are_deleted_in_one_batch(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1, offsets=100)
    client = edge.connect()
    client.send(offset_delete(requests.TOPIC, requests.OTHER_TOPIC, requests.TOPIC))
    _, frame = await turns_until_answered(client)
    answer = requests.answer(ApiKey.OFFSET_DELETE, 0, frame)
    assert {part.error_code for topic in answer.topics for part in topic.partitions} == {0}
    assert len(edge.log.entries) == 1
    assert edge.stats.offset_deletions == 100
    kept = edge.manager.find(GroupId("g0"))
    assert kept is not None
    assert kept.offsets.count == 0


def offset_delete(*topics: str) -> bytes:
    """All partitions of these topics, of the group g0."""
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    rows = [kind.OffsetDeleteRequestPartition(partition_index=index) for index in range(100)]
    message = OffsetDeleteRequest(group_id="g0", topics=[kind(name=name, partitions=rows) for name in topics])
    return requests.request(ApiKey.OFFSET_DELETE, 0, message)


async def test_a_group_with_more_offsets_than_a_batch_has_room_for_is_deleted_in_steps(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH)
    many_groups(edge, 1, offsets=3_000)
    client = edge.connect()
    message = DeleteGroupsRequest(version=2, groups_names=["g0"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, message))
    turns, frame = await turns_until_answered(client)
    assert turns >= 2_700 // STEP_ITEMS
    assert [each.error_code for each in requests.answer(ApiKey.DELETE_GROUPS, 2, frame).results] == [0]
    assert classic(edge.manager, "g0") is None
    assert edge.stats.offset_deletions == 3_000


async def test_a_long_answer_goes_out_in_pieces(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    edge.server.pieces_from_bytes = 1_000
    many_groups(edge, 20_000)
    client = edge.connect()
    client.send(
        requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)), requests.api_versions(2)
    )
    await settle()
    listed, after = client.answers()
    assert client.transport.writes > 2
    assert len(requests.answer(ApiKey.LIST_GROUPS, 5, listed).groups) == 20_000
    assert after[:4] == (2).to_bytes(4, "big")
    assert client.connection._unsent.answers_bytes == 0


async def long_answer_unread(edge: Edge, *behind: bytes) -> Client:
    """A client that does not read a long answer, so that most of its pieces wait for the transport."""
    edge.server.pieces_from_bytes = 1_000
    many_groups(edge, 20_000)
    client = edge.connect()
    client.transport.reads = False
    client.send(requests.request(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(version=5)), *behind)
    await settle()
    return client


async def test_a_full_transport_gets_no_more_pieces_and_the_rest_later(tmp_path: Path) -> None:
    """Else it would copy all of a long answer in one turn."""
    edge = Edge(tmp_path)
    client = await long_answer_unread(edge)
    unsent = client.connection._unsent
    assert client.transport.unsent_bytes < WRITE_BUFFER_MAX + PIECE_BYTES < unsent.answers_bytes
    assert client.connection.has_unparked_work
    assert not client.connection.is_idle
    assert client.connection.bytes_not_yet_sent == edge.budget.total_bytes
    client.transport.drain()
    client.send(requests.api_versions(2))
    await settle()
    listed, after = client.answers()
    assert len(requests.answer(ApiKey.LIST_GROUPS, 5, listed).groups) == 20_000
    assert after[:4] == (2).to_bytes(4, "big")
    assert edge.budget.total_bytes == unsent.answers_bytes == 0
    assert client.connection.is_idle


async def test_a_connection_that_breaks_the_protocol_ends_behind_the_pieces_that_wait(tmp_path: Path) -> None:
    client = await long_answer_unread(Edge(tmp_path), bytes(4))
    assert not client.transport.closed
    client.transport.drain()
    await settle()
    (listed,) = client.answers()
    assert len(requests.answer(ApiKey.LIST_GROUPS, 5, listed).groups) == 20_000
    assert client.transport.closed


async def test_pieces_that_wait_end_with_their_connection(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    client = await long_answer_unread(edge)
    await client.drop()
    assert edge.budget.total_bytes == 0
    assert not edge.server.connections


def test_items_are_given_in_order_with_moments_between_them() -> None:
    given = list(slices.iterate_with_none_at_pauses(range(120)))
    assert [item for item in given if item is not None] == list(range(120))
    assert given.count(None) == 120 // slices.ITEMS_PER_SLICE


def lose_partition(edge: Edge) -> None:
    """The partition is lost, and its groups are still in memory."""
    edge.manager.unloading.at_once = 0
    edge.manager.remove_groups_for_partition(Partition(0))
    assert edge.manager.unloading.is_under_way


async def test_offsets_in_a_lost_partition_are_not_deleted_by_the_slices_after_it(tmp_path: Path) -> None:
    """Its log belongs to another node by then, or has failed: nothing may be appended."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH)
    many_groups(edge, 2, offsets=100)
    client = edge.connect()
    client.send(offset_delete(requests.TOPIC, requests.OTHER_TOPIC, requests.TOPIC))
    await until_appended(edge)
    lose_partition(edge)
    before = len(edge.records)
    _, frame = await turns_until_answered(client)
    assert requests.answer(ApiKey.OFFSET_DELETE, 0, frame).error_code == ErrorCode.NOT_COORDINATOR
    assert len(edge.records) == before


async def test_offsets_in_a_lost_partition_are_not_told_by_the_slices_after_it(tmp_path: Path) -> None:
    """A commit whose flush has failed is still in memory then."""
    edge = Edge(tmp_path, flush_by_itself=False, turn_ns=A_STEP_A_TURN)
    shard = edge.manager.owned_partitions[Partition(0)]
    many_groups(edge, 1)
    for number in range(600):
        shard.apply(
            TopicOffsetCommits(
                GroupId("g0"), f"t{number}", {0: OffsetAndMetadata(Offset(1), -1, "", 0, None)}
            )
        )
    client = edge.connect()
    client.send(requests.fetch_offsets("g0"))
    await asyncio.sleep(0)
    assert client.answers() == []
    kept = shard.groups[GroupId("g0")]
    values = {0: OffsetAndMetadata(Offset(99), -1, "", 0, None)}
    edge.manager.append_and_apply_commits(kept, [TopicOffsetCommits(GroupId("g0"), "t599", values)])
    edge.fail_flush()
    lose_partition(edge)
    _, frame = await turns_until_answered(client)
    assert requests.answer(ApiKey.OFFSET_FETCH, 7, frame).error_code == ErrorCode.NOT_COORDINATOR


async def test_a_long_request_is_told_that_its_partition_was_lost(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    many_groups(edge, 1, offsets=1)
    client = edge.connect()
    wanted = [
        hot.OffsetFetchRequestTopic(name=f"topic-{number}" * 3, partition_indexes=[0])
        for number in range(1_000)
    ]
    request = hot.OffsetFetchRequest(group_id=GroupId("g0"), topics=wanted)
    client.send(requests.request(ApiKey.OFFSET_FETCH, 7, request))
    for _ in range(5):
        await asyncio.sleep(0)
    assert client.answers() == []
    lose_partition(edge)
    _, frame = await turns_until_answered(client)
    assert requests.answer(ApiKey.OFFSET_FETCH, 7, frame).error_code == ErrorCode.NOT_COORDINATOR
    assert not client.transport.closed


class Neighbour:
    """Another node, which sends its ends when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[Callable[[EndsByTopic | None], None]] = []

    def request_committed_offsets(
        self, group_id: str, partitions: Partitions, done: Callable[[EndsByTopic | None], None]
    ) -> None:
        self.asked.append(done)


async def test_an_end_that_a_failed_flush_has_lost_is_not_told_once_other_nodes_have_told_theirs(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path, flush_by_itself=False)
    neighbour = edge.node.ends = Neighbour()
    edge.manager.num_partitions = 2  # the second is another node's
    here, far = (
        next(name for name in names(100) if edge.manager.partition_for(GroupId(name)) == p) for p in (0, 1)
    )
    groups = {requests.TOPIC: here, requests.OTHER_TOPIC: far}
    edge.configure({name: {END_GROUP: group} for name, group in groups.items()})
    client, writer = edge.connect(), edge.connect()
    writer.send(requests.commit(here, {0: 7}))
    await settle()
    kind = ListOffsetsRequest.ListOffsetsTopic
    row = kind.ListOffsetsPartition(version=5, partition_index=0, current_leader_epoch=-1, timestamp=-1)
    topics = [kind(version=5, name=name, partitions=[row]) for name in groups]
    request = ListOffsetsRequest(version=5, replica_id=-1, topics=topics)
    client.send(requests.request(ApiKey.LIST_OFFSETS, 5, request))
    await settle()
    (told,) = neighbour.asked
    edge.fail_flush()
    told({requests.OTHER_TOPIC: {0: CommittedEndOffset(Offset(3), 0)}})
    await settle()
    (frame,) = client.answers()
    answer = requests.answer(ApiKey.LIST_OFFSETS, 5, frame)
    told_of = [(topic.partitions[0].error_code, topic.partitions[0].offset) for topic in answer.topics]
    assert told_of == [(ErrorCode.NOT_COORDINATOR, -1)] * 2
    client.send(requests.api_versions(9))
    assert client.correlation_ids() == [9]


async def test_a_group_that_is_being_deleted_lets_nobody_in(tmp_path: Path) -> None:
    """Else the deletion would be refused in the middle, and have taken offsets away all the same."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH)
    many_groups(edge, 1, offsets=1_000)
    client, other = edge.connect(), edge.connect()
    request = DeleteGroupsRequest(version=2, groups_names=["g0"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, request))
    await until_appended(edge)
    other.send(requests.join("g0", version=3), requests.commit("g0", {5: 7}))
    joined, committed = [(await turns_until_answered(other))[1], (await turns_until_answered(other))[1]]
    retry = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert requests.answer(ApiKey.JOIN_GROUP, 3, joined).error_code == retry
    assert requests.answer(ApiKey.OFFSET_COMMIT, 8, committed).topics[0].partitions[0].error_code == retry
    assert client.answers() == []
    _, frame = await turns_until_answered(client)
    assert requests.answer(ApiKey.DELETE_GROUPS, 2, frame).results[0].error_code == ErrorCode.NONE
    assert classic(edge.manager, "g0") is None


async def test_a_group_whose_deletion_is_given_up_goes_on_with_what_it_has_left(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH)
    many_groups(edge, 1, offsets=1_000)
    client, other = edge.connect(), edge.connect()
    request = DeleteGroupsRequest(version=2, groups_names=["g0"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, request))
    await until_appended(edge)
    client.connection.drop_requests_and_close()
    await settle()
    kept = edge.manager.find(GroupId("g0"))
    assert kept is not None
    assert 0 < kept.offsets.count < 1_000
    other.send(requests.commit("g0", {5: 7}))
    _, committed = await turns_until_answered(other)
    assert requests.answer(ApiKey.OFFSET_COMMIT, 8, committed).topics[0].partitions[0].error_code == 0
