# SPDX-License-Identifier: Apache-2.0
"""The one door to a group: every request passes it, and cannot forget what its reply has to wait for.

A handler has no shards and no groups but what it gets here. Whatever it gets, a group, its absence, or the answer to
a change, the flush that this depends on is noted on the request first (rule 2 of ARCHITECTURE.md). Requests that work
in slices come back between them with `check`.
"""

from collections.abc import Generator, Iterator
from typing import Any, Final

from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import Environment
from coordinator.groups.limits import new_group
from coordinator.groups.outcome import Outcome
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import Shard
from coordinator.runtime.clock import Clock
from coordinator.tickets import Waiting
from protocol.errors import ErrorCode

GROUPS_PER_STEP: Final = 50
"""So many groups are shown before others get a chance: some 100 microseconds."""


class RequestRefused(Exception):
    """Raised by work in slices: the request is answered with this error instead."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Absent:
    """There is no group of this id in the partition that would hold it."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class Door:
    """What api handlers see of the groups of a node."""

    __slots__ = ("_manager", "clock", "env")

    def __init__(self, manager: GroupMetadataManager) -> None:
        self._manager = manager
        self.env: Environment = manager.env
        self.clock: Clock = manager.clock

    # --- finding a group ---

    def enter(self, waiting: Waiting, group_id: str) -> GroupMetadata | Absent | ErrorCode:
        """The group, or that there is none, or why nothing can be said of it here now.

        The reply to `waiting` leaves once what was found is durable. This is where an authorizer will be asked whether
        the principal of the request may do to this group what its api does.
        """
        shard = self._manager.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        if group is None:
            waiting.wait_for(shard.absence_ticket)
            return Absent(group_id)
        waiting.wait_for(group.ticket)
        return group

    def check(self, waiting: Waiting, group: GroupMetadata) -> None:
        """Between two slices: wait for what has been read of the group until now.

        Raises RequestRefused where it is not served any more: what was read may have been lost with its partition.
        """
        if not self._manager.is_served(group):
            raise RequestRefused(ErrorCode.NOT_COORDINATOR)
        waiting.wait_for(group.ticket)

    def every_group(self, waiting: Waiting) -> Iterator[GroupMetadata | None]:
        """The groups of all owned partitions that are not Dead; None where it is time to give way.

        Raises RequestRefused when a partition is lost meanwhile, on which clients ask again: else its groups would be
        missing from a list that looks whole.
        """
        for shard in list(self._manager.owned_partitions.values()):
            for number, group in enumerate(list(shard.groups.values()), 1):
                if group.state is not GroupState.DEAD:
                    waiting.wait_for(group.ticket)
                    yield group
                if number % GROUPS_PER_STEP == 0:
                    yield None
                    self._check_owned(shard)
            self._check_owned(shard)
            waiting.wait_for(shard.absence_ticket)

    def _check_owned(self, shard: Shard) -> None:
        if self._manager.owned_partitions.get(shard.partition) is not shard:
            raise RequestRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # --- what tells nothing of a group's state ---

    def serves(self, group_id: str) -> bool:
        """Whether the partition that holds such a group is served here now."""
        return not isinstance(self._manager.shard_for(group_id), ErrorCode)

    def leads(self, group_id: str) -> bool:
        """Whether the partition that holds such a group is this node's; it may still be loading."""
        return self._manager.shard_for(group_id) is not ErrorCode.NOT_COORDINATOR

    @property
    def is_loading(self) -> bool:
        """Whether any partition is not served yet."""
        return bool(self._manager.loading_partitions)

    def count_offsets(self, group_id: str) -> tuple[int, int]:
        """About how much work it is to show all offsets of a group: how many there are, and bytes of metadata."""
        group = self._manager.get_group(group_id)
        return (0, 0) if group is None else (group.num_offsets, group.offset_metadata_bytes)

    # --- changing a group ---

    def begin(self, absent: Absent) -> GroupMetadata | ErrorCode:
        """A new group in place of the absent one, Empty; it is kept once there is something in it."""
        env = self.env
        error = new_group(env.config.limits, env.usage, absent.group_id)
        return GroupMetadata(absent.group_id, env.usage) if error is ErrorCode.NONE else error

    def run(self, waiting: Waiting, group: GroupMetadata, outcome: Outcome) -> Any:
        """Carry out what was decided about a group; the reply to `waiting` waits for it. Returns the answer.

        Raises RecordTooLarge where that is not said in a reply; nothing has changed then.
        """
        manager = self._manager
        shard = self._shard(group)
        if group.members or group.pending_members:
            shard.add(group)  # a join that was refused leaves no new group behind
        manager.run(shard, group, outcome)
        waiting.wait_for(group.ticket)
        return outcome.answer

    def delete_group(self, waiting: Waiting, group_id: str, count: int) -> Generator[None, None, ErrorCode]:
        """Delete a group and all its offsets, giving way after each `count` of them; gives the answer."""
        error = yield from self._manager.delete_in_steps(group_id, count)
        self.enter(waiting, group_id)  # the answer says how it is now
        return error

    def _shard(self, group: GroupMetadata) -> Shard:
        shard = self._manager.shard_for(group.group_id)
        assert not isinstance(shard, ErrorCode), f"the partition of {group.group_id} went within a step"
        return shard
