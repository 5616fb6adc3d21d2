# SPDX-License-Identifier: Apache-2.0
"""The only access of requests to groups, so that every reply waits for the flushes that it depends on.

A handler gets shards and groups only from this module. Before it gets a group, the absence of one, or the result of
a change, the flush that this depends on is noted on the request (rule 2 of ARCHITECTURE.md). Requests that work in
slices call `recheck_and_add_dependency` between them.
"""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, Final

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.limits import refuse_group_over_limit
from coordinator.groups.outcome import Outcome
from coordinator.migration.ledger import is_ledger
from coordinator.migration.model import Location
from coordinator.partitions.group_adoption import Adoptions
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.runtime.clock import Clock
from coordinator.telemetry.outside_changes import OutsideChangeLog
from coordinator.tickets import ReplyDependencies
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from storage.format.records import OffsetAndMetadata, TopicOffsetCommits

__all__ = ["AbsentGroup", "GroupAccess", "GroupEntry", "RequestRefused"]

GROUPS_PER_STEP: Final = 50
"""The number of groups that are listed before other requests get a turn: some 100 microseconds."""


class RequestRefused(Exception):
    """Raised by work in slices, so that the request is answered with this error."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class AbsentGroup:
    """The absence of a group from the partition that would hold it."""

    __slots__ = ("group_id", "shard")

    def __init__(self, group_id: GroupId, shard: Shard) -> None:
        self.group_id = group_id
        self.shard = shard


class GroupAccess:
    """The groups of a node as api handlers see them."""

    __slots__ = ("_manager", "adoptions", "clock", "env", "outside_changes")

    def __init__(self, manager: GroupMetadataManager) -> None:
        self._manager = manager
        self.adoptions = Adoptions(manager)
        """Takes groups over from a cluster, and gives them back."""
        self.outside_changes = OutsideChangeLog()
        """Logs what clients that are no members change."""
        self.env: GroupEnvironment = manager.env
        self.clock: Clock = manager.clock

    # --- finding a group ---

    def look_up_group(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """Return the group, or its absence, or the error if this node cannot serve it now.

        COORDINATOR_LOAD_IN_PROGRESS for a group that is absent here and may be at the cluster behind the gateway. The
        reply to `waiting` is sent once the state found is durable. An authorizer will be called here to check whether
        the principal of the request may do to this group what its api does.
        """
        kept = self.look_up_local_group(waiting, group_id)
        if isinstance(kept, AbsentGroup):
            location = kept.shard.ledger.locate(group_id, self.clock.mono_ms())
            may_be_there = location is Location.AT_CLUSTER and self._manager.needs_marks
            if (may_be_there or location is Location.MIGRATING) and not is_ledger(group_id):
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return kept

    def look_up_local_group(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """As `look_up_group`, but a group that is absent here counts as absent, whether or not the cluster has it."""
        shard = self._manager.find_shard_or_error(group_id)
        if not isinstance(shard, Shard):  # a compiled class: testing for it is faster than for ErrorCode
            return shard
        kept = shard.groups.get(group_id)
        if kept is None:
            waiting.add_ticket(shard.absence_ticket)
            return AbsentGroup(group_id, shard)
        waiting.add_ticket(kept.ticket)
        return kept

    def look_up_classic_group(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """As `look_up_group`, for requests that only a group of the classic protocol understands.

        Returns INCONSISTENT_GROUP_PROTOCOL for a group of another kind.
        """
        return _classic(self.look_up_group(waiting, group_id))

    def look_up_local_classic_group(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """As `look_up_local_group`; a group of another type is an error (see `look_up_classic_group`)."""
        return _classic(self.look_up_local_group(waiting, group_id))

    def look_up_group_to_change(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """As `look_up_group`, to join, commit to or delete a group: COORDINATOR_LOAD_IN_PROGRESS while it is closed."""
        kept = self.look_up_group(waiting, group_id)
        if isinstance(kept, (GroupEntry, AbsentGroup)) and self._is_closed(kept.shard, group_id):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return kept

    def _is_closed(self, shard: Shard, group_id: GroupId) -> bool:
        return bool(shard.ledger.closed) and shard.ledger.is_closed(group_id, self.clock.mono_ms())

    def look_up_classic_to_change(
        self, waiting: ReplyDependencies, group_id: GroupId
    ) -> GroupEntry | AbsentGroup | ErrorCode:
        """As `look_up_group_to_change`; a group of another type is an error (see `look_up_classic_group`)."""
        return _classic(self.look_up_group_to_change(waiting, group_id))

    def recheck_and_add_dependency(self, waiting: ReplyDependencies, kept: GroupEntry) -> None:
        """Let the reply wait, between two slices, for the state of the group that was read until now.

        Raises RequestRefused if the group is no longer served: that state may have been lost with its partition.
        """
        if not self._manager.is_group_still_served(kept):
            raise RequestRefused(ErrorCode.NOT_COORDINATOR)
        waiting.add_ticket(kept.ticket)

    def iterate_groups(self, waiting: ReplyDependencies) -> Iterator[GroupEntry | None]:
        """Yield the groups of all owned partitions that are not Dead, and None when it is time for other work.

        Raises RequestRefused if a partition is lost meanwhile, on which clients try again: else its groups would be
        missing from a list that looks complete.
        """
        for shard in list(self._manager.owned_partitions.values()):
            for number, kept in enumerate(list(shard.groups.values()), 1):
                if not kept.group.is_dead:
                    waiting.add_ticket(kept.ticket)
                    yield kept
                if number % GROUPS_PER_STEP == 0:
                    yield None
                    self._check_owned(shard)
            self._check_owned(shard)
            waiting.add_ticket(shard.absence_ticket)

    def _check_owned(self, shard: Shard) -> None:
        if self._manager.owned_partitions.get(shard.partition) is not shard:
            raise RequestRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # --- independent of a group's state ---

    def serves(self, group_id: GroupId) -> bool:
        """Return whether the partition that holds a group of this id is served here now."""
        return not isinstance(self._manager.find_shard_or_error(group_id), ErrorCode)

    def leads(self, group_id: GroupId) -> bool:
        """Return whether this node leads the partition that holds a group of this id; it may still be loading."""
        return self._manager.find_shard_or_error(group_id) is not ErrorCode.NOT_COORDINATOR

    @property
    def has_loading_partitions(self) -> bool:
        """True if any partition is not served yet."""
        return bool(self._manager.loading_partitions)

    def measure_group_offsets(self, group_id: GroupId) -> tuple[int, int]:
        """Return the number of offsets of a group and their bytes of metadata, to estimate the work to list them."""
        kept = self._manager.find(group_id)
        return (0, 0) if kept is None else (kept.offsets.count, kept.offsets.metadata_bytes)

    def select_first_offsets(self, group_id: GroupId, count: int) -> list[tuple[str, int, OffsetAndMetadata]]:
        """Return the first `count` offsets of a group, as (topic, partition, value); none if it is not served here."""
        kept = self._manager.find(group_id)
        return [] if kept is None else list(islice(kept.offsets.all(), count))

    # --- changing a group ---

    def make_unstored_group(self, absent: AbsentGroup) -> GroupEntry | ErrorCode:
        """Return a new group in place of the absent one, Empty; it is kept once it holds something."""
        if is_ledger(absent.group_id):
            return ErrorCode.INVALID_GROUP_ID
        env = self.env
        error = refuse_group_over_limit(env.config.limits, env.usage, absent.group_id)
        return absent.shard.make_uncached_group(absent.group_id) if error is ErrorCode.NONE else error

    def carry_out_outcome(self, waiting: ReplyDependencies, kept: GroupEntry, outcome: Outcome) -> Any:
        """Carry out a decision about a group and return its `answer`; the reply to `waiting` waits for it.

        Raises RecordTooLarge if no reply reports that; nothing has changed then.
        """
        if not kept.is_kept and kept.group.has_members_or_pending:
            kept.shard.add_or_get_existing(kept)  # a join that was refused leaves no new group behind
        self._manager.carry_out_outcome(kept, outcome)
        waiting.add_ticket(kept.ticket)
        return outcome.answer

    def store_offsets(
        self, waiting: ReplyDependencies, kept: GroupEntry, commits: list[TopicOffsetCommits]
    ) -> None:
        """Store the offsets that a group has committed; the reply to `waiting` waits for them.

        Raises RecordTooLarge; nothing has changed then.
        """
        self._manager.append_and_apply_commits(kept, commits)
        waiting.add_ticket(kept.ticket)

    def delete_group_in_steps(
        self, waiting: ReplyDependencies, group_id: GroupId, count: int
    ) -> Generator[None, None, ErrorCode]:
        """Delete a group and all its offsets, yielding after each `count` of them; return the error code."""
        kept = self._manager.find(group_id)
        if kept is not None and self._is_closed(kept.shard, group_id):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        error = yield from self._manager.delete_group_in_steps(group_id, count)
        self.look_up_group(waiting, group_id)  # the response reports the state now
        return error


def _classic(kept: GroupEntry | AbsentGroup | ErrorCode) -> GroupEntry | AbsentGroup | ErrorCode:
    if isinstance(kept, GroupEntry) and not isinstance(kept.group, ClassicGroup):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return kept
