# SPDX-License-Identifier: Apache-2.0
"""Finds the details of one group of this node, in slices of time."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Final

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.member import MemberMetadata
from coordinator.groups.classic.state import GroupState
from coordinator.jobs.lag_from_declared_ends import split_offsets_into_steps
from coordinator.overview.group_details import (
    DetailsQuery,
    GroupAnswer,
    GroupFacts,
    GroupNotFound,
    GroupQuery,
    MemberRow,
    MembersPage,
    MembersQuery,
    OffsetRow,
    OffsetsPage,
    OffsetsQuery,
    RunningRebalance,
    cut_assignment,
    describe_ended_rebalance,
    format_offset_position,
)
from coordinator.overview.local_groups import LocalGroups
from coordinator.overview.paging import PAGE_CHARACTERS_MAX, FirstOf, cut_page
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from coordinator.runtime.slices import Slices
from protocol.consumer_protocol import decode_assignment
from protocol.newtypes import GroupId
from storage.format.records import OffsetAndMetadata

ASSIGNMENT_BYTES_MAX: Final = 100_000
"""A larger assignment is not decoded, because that would keep the event loop too long."""

KnownEnds = Mapping[str, Mapping[int, int]]
"""The end offsets that are known, by topic and partition."""
FindEnds = Callable[[Mapping[str, Collection[int]]], Awaitable[KnownEnds]]
"""Returns the ends of these partitions, by topic, as far as they are known within a second."""


class LocalGroupDetails:
    """The details of this node's groups."""

    def __init__(
        self, node_id: int, manager: GroupMetadataManager, groups: LocalGroups, find_ends: FindEnds
    ) -> None:
        """`groups` is the list of the same groups."""
        self._node_id = node_id
        self._manager = manager
        self._groups = groups
        self._find_ends = find_ends

    async def ask(self, query: GroupQuery) -> GroupAnswer:
        """Return the answer to a question about one group."""
        kept = self._manager.find(GroupId(query.group))
        if kept is not None and not kept.group.is_dead:
            answer = await self._answer(kept, query)
            if self._manager.is_group_still_served(kept) and not kept.group.is_dead:
                return answer
        partition = self._manager.partition_for(GroupId(query.group))
        return GroupNotFound(
            [part for part in self._groups.list_missing_parts() if partition in part.partitions]
        )

    async def _answer(self, kept: GroupEntry, query: GroupQuery) -> GroupAnswer:
        match query:
            case DetailsQuery():
                return await self._details(kept)
            case MembersQuery():
                return await self._members(kept, query)
            case OffsetsQuery():
                return await self._offsets(kept, query)

    async def _details(self, kept: GroupEntry) -> GroupFacts:
        lag = await self._groups.find_lag(kept)
        group = kept.classic_group
        return GroupFacts(
            group=kept.group_id,
            state=group.state.value,
            type=group.kind,
            protocol_type=group.protocol_type or "",
            protocol=group.protocol_name or "",
            generation=group.generation_id,
            leader=group.leader_id or "",
            members=group.member_count,
            offsets=kept.offsets.count,
            lag=lag,
            partition=kept.shard.partition,
            node=self._node_id,
            rebalance=self._running_rebalance(group),
            rebalances=[
                describe_ended_rebalance(each)
                for each in self._manager.recent_rebalances.of_group(kept.group_id)
            ],
        )

    def _running_rebalance(self, group: ClassicGroup) -> RunningRebalance | None:
        timings, clock = group.rebalance, self._manager.clock
        if timings is None:
            return None
        return RunningRebalance(
            began_ms=clock.wall_ms() - (clock.mono_ms() - timings.began_ms),
            cause=timings.cause.value,
            awaited=count_awaited(group),
        )

    async def _members(self, kept: GroupEntry, query: MembersQuery) -> MembersPage:
        group, slices = kept.classic_group, Slices(self._manager.clock.nanos)
        after = ("", query.after) if query.after else None
        first: FirstOf[MemberMetadata] = FirstOf(query.limit + 1, after, descending=False)
        for member in list(group.members.values()):
            first.offer(("", member.member_id), member)
            if slices.is_over:
                await slices.yield_to_event_loop()
        rows: list[MemberRow] = []
        characters = 0
        for member in first.in_order():
            rows.append(make_member_row(group, member))
            if characters > PAGE_CHARACTERS_MAX:
                break  # the page has no room for this row, and none further needs to be decoded
            characters += rows[-1].characters
            if slices.is_over:
                await slices.yield_to_event_loop()
        shown, left_out = cut_page(rows, query.limit)
        return MembersPage(shown, shown[-1].member if left_out else None, group.member_count)

    async def _offsets(self, kept: GroupEntry, query: OffsetsQuery) -> OffsetsPage:
        slices = Slices(self._manager.clock.nanos)
        first: FirstOf[tuple[str, int, OffsetAndMetadata]] = FirstOf(
            query.limit + 1, query.after, descending=False
        )
        for topic, step in split_offsets_into_steps(kept, list(kept.offsets.by_topic)):
            for partition, committed in step:
                first.offer((topic, partition), (topic, partition, committed))
            if slices.is_over:
                await slices.yield_to_event_loop()
        found = first.in_order()
        wanted: dict[str, list[int]] = {}
        for topic, partition, _ in found:
            wanted.setdefault(topic, []).append(partition)
        ends = await self._find_ends(wanted) if wanted else {}
        shown, left_out = cut_page(make_offset_rows(found, ends), query.limit)
        following = format_offset_position(shown[-1]) if left_out else None
        return OffsetsPage(shown, following, kept.offsets.count)


def count_awaited(group: ClassicGroup) -> int:
    """Return for how many members a group waits, with those that were given an id and have not joined yet."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return len(group.members) - group.num_members_awaiting_join + len(group.pending_members)
    return 1 if group.state is GroupState.COMPLETING_REBALANCE else 0


def is_awaited(group: ClassicGroup, member: MemberMetadata) -> bool:
    """Return whether the group waits for a member: to rejoin or, once all have, for the leader's assignment."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return member.awaiting_join is None
    return group.state is GroupState.COMPLETING_REBALANCE and group.is_leader(member.member_id)


def make_member_row(group: ClassicGroup, member: MemberMetadata) -> MemberRow:
    """Return what is shown of a member."""
    assignment = (
        decode_assignment(member.assignment)
        if group.uses_consumer_group_protocol and len(member.assignment) <= ASSIGNMENT_BYTES_MAX
        else None
    )
    return MemberRow(
        member=member.member_id,
        instance=member.group_instance_id,
        client=member.client_id,
        host=member.client_host,
        awaited=is_awaited(group, member),
        partitions=None if assignment is None else sum(map(len, assignment.values())),
        assignment=None if assignment is None else cut_assignment(assignment),
    )


def make_offset_rows(
    offsets: Collection[tuple[str, int, OffsetAndMetadata]], ends: KnownEnds
) -> Iterator[OffsetRow]:
    """Yield what is shown of offsets. The lag may be negative: the offset may be beyond the end."""
    for topic, partition, committed in offsets:
        end = ends.get(topic, {}).get(partition)
        yield OffsetRow(
            topic=topic,
            partition=partition,
            offset=committed.offset,
            leader_epoch=None if committed.leader_epoch < 0 else committed.leader_epoch,
            metadata=committed.metadata,
            committed_ms=committed.commit_timestamp,
            end=end,
            lag=None if end is None else end - committed.offset,
        )
