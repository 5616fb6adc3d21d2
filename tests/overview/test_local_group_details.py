# SPDX-License-Identifier: Apache-2.0
"""The details of one group of a node: the group, its members, and its offsets."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from coordinator.jobs.lag_from_declared_ends import sum_group_lag
from coordinator.node import Partitions
from coordinator.overview.group_details import (
    ASSIGNED_PARTITIONS_MAX,
    ASSIGNMENT_CHARACTERS_MAX,
    DetailsQuery,
    GroupAnswer,
    GroupFacts,
    GroupNotFound,
    GroupQuery,
    MembersPage,
    MembersQuery,
    OffsetRow,
    OffsetsPage,
    OffsetsQuery,
    RunningRebalance,
    cut_assignment,
    decode_group_answer,
    encode_group_answer,
    merge_group_answers,
    parse_offset_position,
)
from coordinator.overview.group_list import UnservedPart
from coordinator.overview.local_group_details import ASSIGNMENT_BYTES_MAX, KnownEnds, LocalGroupDetails
from coordinator.overview.local_groups import LagOf, LocalGroups
from coordinator.overview.paging import LIMIT_MAX, PAGE_CHARACTERS_MAX
from coordinator.runtime.slices import SLICE_NS
from protocol.newtypes import GroupId, Offset, Partition
from storage.format.records import OffsetAndMetadata
from tests.groups.harness import WALL_START_MS, Cluster
from tests.support.consumer_protocol import encode_assignment

END = OffsetAndMetadata(Offset(100), -1, "", 0)
SLOW: dict[str, Any] = {"session_ms": 600_000, "rebalance_ms": 60_000}


@dataclass
class Asking:
    """Puts questions to a node whose topic t ends at 100 in partition 0."""

    cluster: Cluster
    failed: dict[Partition, str] = field(default_factory=dict)
    ends_asked: list[dict[str, list[int]]] = field(default_factory=list)
    lags_asked: list[Partitions | None] = field(default_factory=list)
    while_asking: Callable[[], object] = lambda: None
    """Is called before the ends are known."""

    async def _lags(self, partitions: Partitions | None) -> LagOf:
        self.lags_asked.append(partitions)
        self.while_asking()
        return lambda kept, slices: sum_group_lag(kept, {"t": {0: END}}, slices)

    async def _ends(self, partitions: Mapping[str, Collection[int]]) -> KnownEnds:
        self.while_asking()
        self.ends_asked.append({topic: list(numbers) for topic, numbers in partitions.items()})
        return {"t": {0: 100}}

    async def ask(self, query: GroupQuery) -> GroupAnswer:
        """The answer, which has been to another process and back."""
        groups = LocalGroups(7, self.cluster.manager, self.failed, self._lags)
        details = LocalGroupDetails(7, self.cluster.manager, groups, self._ends)
        answer = await details.ask(query)
        assert decode_group_answer(query, encode_group_answer(answer)) == answer
        return answer

    async def details(self, group: str = "g") -> GroupFacts:
        answer = await self.ask(DetailsQuery(group))
        assert isinstance(answer, GroupFacts)
        return answer

    async def members(self, limit: int = 50, after: str = "") -> MembersPage:
        answer = await self.ask(MembersQuery("g", limit, after))
        assert isinstance(answer, MembersPage)
        return answer

    async def offsets(self, limit: int = 50, after: tuple[str, int] | None = None) -> OffsetsPage:
        answer = await self.ask(OffsetsQuery("g", limit, after))
        assert isinstance(answer, OffsetsPage)
        return answer


@pytest.fixture
def asking() -> Asking:
    return Asking(Cluster())


def stable_pair(cluster: Cluster, assigned: dict[str, list[int]]) -> tuple[str, str]:
    """A group of two members, the second of which has these partitions; returns their ids, the leader's first."""
    leader, second = cluster.stable_group(2, client_id="app", **SLOW)
    cluster.join(leader, **SLOW)
    cluster.join(second, **SLOW)
    cluster.sync(leader, cluster.group().generation_id, {second: encode_assignment(assigned)})
    return leader, second


# --- the group ---


async def test_a_group_is_shown_with_its_last_rebalances(asking: Asking) -> None:
    leader, _ = stable_pair(asking.cluster, {})
    asking.cluster.commit(95, member_id=leader, generation=asking.cluster.group().generation_id)
    found = await asking.details()
    assert (found.group, found.state, found.type, found.protocol_type) == (
        "g",
        "Stable",
        "classic",
        "consumer",
    )
    assert (found.protocol, found.generation, found.leader) == ("range", 3, leader)
    assert (found.members, found.offsets, found.lag, found.node) == (2, 1, 5, 7)
    assert found.partition == asking.cluster.manager.partition_for(GroupId("g"))
    assert found.rebalance is None
    assert [(each.cause, each.generation) for each in found.rebalances] == [
        ("leader_rejoined", 3),
        ("member_joined", 2),
    ]


async def test_the_lag_is_asked_for_in_the_partitions_of_the_group_alone(asking: Asking) -> None:
    for partition in (0, 3):
        asking.cluster.commit(95, partition=partition)
    assert (await asking.details()).lag == 5
    assert asking.lags_asked == [{"t": [0, 3]}]


async def test_a_simple_group_has_neither_protocol_nor_leader(asking: Asking) -> None:
    asking.cluster.commit(5, group="simple")
    found = await asking.details("simple")
    assert (found.state, found.protocol_type, found.protocol, found.leader) == ("Empty", "", "", "")
    assert (found.generation, found.rebalances) == (0, [])


async def test_a_rebalance_under_way_is_shown_with_the_members_that_are_late(asking: Asking) -> None:
    cluster = asking.cluster
    leader, second, third = cluster.stable_group(3, **SLOW)
    cluster.advance(7_000)
    cluster.join(leader, **SLOW)
    cluster.advance(2_000)
    cluster.join(session_ms=60_000)  # gets an id, and has not joined with it yet
    running = (await asking.details()).rebalance
    assert running == RunningRebalance(WALL_START_MS + 7_000, "leader_rejoined", 3)
    assert await awaited(asking) == {second, third}
    cluster.join(second, **SLOW)
    assert await awaited(asking) == {third}


async def test_the_group_waits_for_the_leader_once_all_have_joined(asking: Asking) -> None:
    leader = asking.cluster.member().response.member_id
    asking.cluster.join()  # gets an id, for which the group does not wait now
    running = (await asking.details()).rebalance
    assert running is not None
    assert (running.cause, running.awaited) == ("member_joined", 1)
    assert await awaited(asking) == {leader}
    asking.cluster.sync(leader, 1, {})
    assert await awaited(asking) == set()


async def awaited(asking: Asking) -> set[str]:
    return {row.member for row in (await asking.members()).members if row.awaited}


# --- members ---


async def test_members_are_shown_with_their_assignments(asking: Asking) -> None:
    leader, second = stable_pair(asking.cluster, {"b": [2, 0], "a": [1]})
    page = await asking.members()
    rows = {row.member: row for row in page.members}
    assert (list(rows), page.total, page.next) == (sorted((leader, second)), 2, None)
    row = rows[second]
    assert (row.client, row.host, row.instance, row.awaited) == ("app", "/127.0.0.1", None, False)
    assert (row.partitions, row.assignment) == (3, {"a": [1], "b": [0, 2]})
    assert list(row.assignment or {}) == ["a", "b"]
    assert (rows[leader].partitions, rows[leader].assignment) == (0, {})


async def test_a_static_member_has_its_instance_id(asking: Asking) -> None:
    asking.cluster.join(instance="pod-1")
    assert [row.instance for row in (await asking.members()).members] == ["pod-1"]


@pytest.mark.parametrize(
    ("protocol_type", "assignment"),
    [
        ("connect", encode_assignment({"t": [0]})),
        ("consumer", b"\0\0\0\0\0\7"),
        ("consumer", encode_assignment({"t": range(ASSIGNMENT_BYTES_MAX // 4)})),
    ],
    ids=["no consumer", "cut short", "large"],
)
async def test_an_assignment_that_cannot_be_shown_is_none(
    asking: Asking, protocol_type: str, assignment: bytes
) -> None:
    member = asking.cluster.member(protocol_type=protocol_type).response.member_id
    asking.cluster.sync(member, 1, {member: assignment})
    (row,) = (await asking.members()).members
    assert (row.partitions, row.assignment) == (None, None)


def test_a_long_assignment_is_cut() -> None:
    many = {"a": range(ASSIGNED_PARTITIONS_MAX - 1), "b": range(5), "c": range(5)}
    shown = cut_assignment({topic: list(numbers) for topic, numbers in many.items()})
    assert {topic: len(numbers) for topic, numbers in shown.items()} == {
        "a": ASSIGNED_PARTITIONS_MAX - 1,
        "b": 1,
    }
    long = ASSIGNMENT_CHARACTERS_MAX // 2
    assert list(cut_assignment({letter * long: [0] for letter in "abc"})) == ["a" * long, "b" * long]


async def test_members_are_paged_in_the_order_of_their_ids(asking: Asking) -> None:
    expected = sorted(asking.cluster.stable_group(5))
    shown: list[str] = []
    after = ""
    for size in (2, 2, 1):
        page = await asking.members(limit=2, after=after)
        assert (len(page.members), page.total) == (size, 5)
        shown += [row.member for row in page.members]
        after = page.next or ""
    assert (shown, after) == (expected, "")


async def test_a_page_of_members_ends_where_their_assignments_are_long(asking: Asking) -> None:
    topics = {letter * 8_000: [0] for letter in "abcde"}
    cluster = asking.cluster
    members = cluster.stable_group(4)
    cluster.join(members[0])
    for member in members[1:]:
        cluster.join(member)
    cluster.sync(members[0], cluster.group().generation_id, dict.fromkeys(members, encode_assignment(topics)))
    page = await asking.members()
    assert [row.member for row in page.members] == sorted(members)[:3]
    assert sum(row.characters for row in page.members) > PAGE_CHARACTERS_MAX
    assert page.next == sorted(members)[2]
    assert [row.member for row in (await asking.members(after=page.next)).members] == sorted(members)[3:]


# --- offsets ---


async def test_offsets_are_shown_with_ends_and_lag(asking: Asking) -> None:
    asking.cluster.commit(95, partition=0, metadata="where I was")
    asking.cluster.advance(1_000)
    asking.cluster.commit(7, partition=1)
    page = await asking.offsets()
    assert page == OffsetsPage(
        [
            OffsetRow("t", 0, 95, None, "where I was", WALL_START_MS, 100, 5),
            OffsetRow("t", 1, 7, None, "", WALL_START_MS + 1_000, None, None),
        ],
        None,
        2,
    )
    assert asking.ends_asked == [{"t": [0, 1]}]


async def test_an_offset_beyond_the_end_has_a_negative_lag(asking: Asking) -> None:
    asking.cluster.commit(103)
    assert [row.lag for row in (await asking.offsets()).offsets] == [-3]


async def test_offsets_are_paged_in_the_order_of_topic_and_partition(asking: Asking) -> None:
    places = [(topic, partition) for topic in ("a:1", "b") for partition in (0, 2, 10)]
    for topic, partition in reversed(places):
        asking.cluster.commit(5, topic=topic, partition=partition)
    shown: list[tuple[str, int]] = []
    after: tuple[str, int] | None = None
    for _ in range(3):
        page = await asking.offsets(limit=2, after=after)
        shown += [(row.topic, row.partition) for row in page.offsets]
        after = parse_offset_position(page.next) if page.next else None
    assert (shown, after) == (places, None)
    assert max(sum(map(len, asked.values())) for asked in asking.ends_asked) == 3, "a page, and what follows"


async def test_long_metadata_ends_a_page(asking: Asking) -> None:
    for partition in range(30):
        asking.cluster.commit(5, partition=partition, metadata="m" * 4_000)
    page = await asking.offsets()
    assert len(page.offsets) == 25
    assert page.next == "24:t"
    assert page.total == 30


async def test_offsets_are_found_in_slices(asking: Asking) -> None:
    for topic in range(20):
        asking.cluster.commit(5, topic=f"topic-{topic:02}")
    asking.cluster.clock.look_ns = SLICE_NS + 1  # it gives way after every topic
    found = asyncio.ensure_future(asking.offsets(limit=3))
    turns = 0
    while not found.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 20
    assert [row.topic for row in found.result().offsets] == ["topic-00", "topic-01", "topic-02"]


@pytest.mark.parametrize("text", ["", "t", "t:0", "-1:t", ":t", "12345678901:t"])
def test_no_other_text_is_a_position(text: str) -> None:
    with pytest.raises(ValueError, match="after: expected the `next` of another page"):
        parse_offset_position(text)


# --- groups that are not there ---


async def test_a_group_that_is_not_there_is_not_found(asking: Asking) -> None:
    partition = asking.cluster.manager.partition_for(GroupId("no"))
    asking.failed[Partition(partition + 1)] = "damaged"
    for query in (DetailsQuery("no"), MembersQuery("no"), OffsetsQuery("no")):
        assert await asking.ask(query) == GroupNotFound([])
    asking.failed[partition] = "unreadable"
    assert await asking.ask(DetailsQuery("no")) == GroupNotFound([UnservedPart(7, [partition], "unreadable")])


async def test_a_deleted_group_is_not_found(asking: Asking) -> None:
    asking.cluster.commit(5, group="gone")
    asking.cluster.manager.delete_group(GroupId("gone"))
    assert isinstance(await asking.ask(DetailsQuery("gone")), GroupNotFound)


@pytest.mark.parametrize("query", [DetailsQuery("g"), OffsetsQuery("g")])
async def test_a_group_that_is_deleted_or_lost_meanwhile_is_not_found(query: GroupQuery) -> None:
    for end in ("delete", "lose"):
        asking = Asking(Cluster())
        asking.cluster.commit(5)
        manager = asking.cluster.manager
        (partition,) = manager.owned_partitions
        asking.while_asking = (
            partial(manager.delete_group, GroupId("g"))
            if end == "delete"
            else partial(manager.remove_groups_for_partition, partition)
        )
        assert isinstance(await asking.ask(query), GroupNotFound)


def test_the_answer_is_that_of_the_node_that_has_the_group() -> None:
    page = OffsetsPage([], None, 0)
    unled = UnservedPart(-1, [3], "it is moving")
    gone = UnservedPart(2, [], "the node has ended")
    loading = UnservedPart(1, [3], "loading")
    assert merge_group_answers([GroupNotFound([]), page], [unled]) == page
    assert merge_group_answers([GroupNotFound([loading])], [unled]) == GroupNotFound([unled, loading])
    assert merge_group_answers([], [gone]) == GroupNotFound([gone])


def test_questions_have_bounds() -> None:
    for limit in (0, LIMIT_MAX + 1):
        with pytest.raises(ValueError, match="limit: expected"):
            MembersQuery("g", limit)
        with pytest.raises(ValueError, match="limit: expected"):
            OffsetsQuery("g", limit)
