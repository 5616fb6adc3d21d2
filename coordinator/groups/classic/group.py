# SPDX-License-Identifier: Apache-2.0
"""A classic group with the methods that its partition calls; other modules of the package make its decisions."""

from collections.abc import Sequence
from typing import Final

from coordinator.groups.classic import rebalance, replay, timeouts
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.group import Since
from coordinator.groups.outcome import Instant, Outcome, Reply
from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupResponse
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.hot.sync_group import SyncGroupResponse
from protocol.mypyc_shim import mypyc_attr
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, Record

KIND: Final = "classic"
_NO_TOPICS: Final[frozenset[str]] = frozenset()


_NONE: Final = ErrorCode.NONE
_DEAD: Final = GroupState.DEAD
_EMPTY: Final = GroupState.EMPTY
_COMPLETING: Final = GroupState.COMPLETING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""


@mypyc_attr(acyclic=True)
class ClassicGroup(GroupMetadata):
    """Kafka's ClassicGroup: GroupMetadata with the methods that a partition needs of any group (`groups.group`).

    A simple group, which has offsets and never had members, stays Empty in generation 0.
    """

    __slots__ = ()

    @property
    def kind(self) -> str:
        """The group's type in ListGroups."""
        return KIND

    @property
    def is_dead(self) -> bool:
        """True if the group has left memory, or is about to."""
        return self.state is _DEAD

    @property
    def is_empty(self) -> bool:
        """True if the group has no members, and accepts commits without a generation."""
        return self.state is _EMPTY

    @property
    def has_members_or_pending(self) -> bool:
        """True if the group has members, or ids that were given out."""
        return bool(self.members or self.pending_members)

    @property
    def member_count(self) -> int:
        """The number of members."""
        return len(self.members)

    # --- records ---

    def apply_record(self, record: Record) -> bool:
        """Apply the value of the group's record; return False, and change nothing, for its tombstone."""
        assert isinstance(record, GroupMetadataRecord), f"{record} is no record of a classic group"
        value = record.value
        if value is None:
            return False
        replay.apply_group_metadata(self, value)
        return True

    def forget_records(self) -> None:
        """Reset everything but the group's offsets, because its tombstone was read."""
        replay.forget_metadata(self)

    # --- steps ---

    def on_loaded(self, env: GroupEnvironment, now: Instant) -> Outcome:
        """Give the members a full session after the group was loaded from the log."""
        return timeouts.on_loaded(env, self, now)

    def expire_due_deadlines(self, env: GroupEnvironment, now: Instant, due_ms: int) -> Outcome:
        """Expire everything that was due by `due_ms`, and set `wakeup_ms`."""
        return timeouts.handle_due_deadlines(env, self, now, due_ms)

    def replace_refused_outcome(
        self, env: GroupEnvironment, outcome: Outcome, error: ErrorCode, now: Instant
    ) -> Outcome:
        """Return the outcome that replaces one whose records the log refused."""
        return rebalance.replace_refused_outcome(env, self, outcome, error, now)

    def unload_and_fail_requests(self, error: ErrorCode) -> list[Reply]:
        """Make the group Dead because its partition is lost, and return the error replies to its waiting requests."""
        self.mark_dead_and_uncount()
        replies = []
        for member in self.members.values():
            joining, syncing = member.awaiting_join, member.awaiting_sync
            if joining is not None:
                refusal = JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name=None)
                replies.append(Reply(joining, refusal))
            if syncing is not None:
                replies.append(Reply(syncing, SyncGroupResponse(error_code=error)))
            member.awaiting_join = member.awaiting_sync = None
        return replies

    def suspend_as_dead(self) -> None:
        """Make the group Dead while its offsets are deleted in steps: joins and commits have to be tried again."""
        self.state = _DEAD

    def resume_as_empty(self) -> None:
        """Make the group Empty again, with the offsets that remain."""
        self.state = _EMPTY

    # --- offsets ---

    def validate_commit(self, request: OffsetCommitRequest) -> ErrorCode:
        """Return NONE if this commit is accepted, else its error (ClassicGroup.validateOffsetCommit).

        A commit without a generation is accepted only if the group is Empty.
        """
        state = self.state
        generation_id = request.generation_id_or_member_epoch
        if state is _DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if state is _EMPTY and generation_id < 0:
            return _NONE
        if generation_id >= 0 or request.member_id or request.group_instance_id is not None:
            error = self.validate_member(request.member_id, request.group_instance_id)
            if error is not _NONE:
                return error
            if generation_id != self.generation_id:
                return ErrorCode.ILLEGAL_GENERATION
        elif state is not _EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if state is _COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return _NONE

    def validate_delete_group(self) -> ErrorCode:
        """Return NONE if the group may be deleted: not while it has members (ClassicGroup.validateDeleteGroup)."""
        if self.state is _DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return _NONE if self.state is _EMPTY else ErrorCode.NON_EMPTY_GROUP

    def validate_delete_offsets(self) -> ErrorCode:
        """Return NONE if offsets may be deleted: members that are no consumers might need any of them."""
        if self.state is _DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.state is not _EMPTY and not self.uses_consumer_group_protocol:
            return ErrorCode.NON_EMPTY_GROUP
        return _NONE

    def offset_expiration_condition(self) -> tuple[Since | None, frozenset[str]]:
        """Return the start of an offset's retention time, None for never, and the topics that do not expire.

        ClassicGroup.offsetExpirationCondition:

        | group                                 | the retention time counts from            |
        |---------------------------------------|-------------------------------------------|
        | Empty, with a protocol type           | the moment it became Empty                |
        | Stable consumers, known subscriptions | the commit, for topics none consumes      |
        | no protocol type (simple consumers)   | the commit                                |
        | of a protocol not served, in the log  | never: unknown here what it consumes      |
        | any other                             | never                                     |
        """
        if self.protocol_type is None:
            return (None if self.of_other_protocol else _commit_timestamp), _NO_TOPICS
        if self.state is _EMPTY:
            since = self.current_state_timestamp
            return (_commit_timestamp if since is None else lambda _: since), _NO_TOPICS
        consumed = self.subscribed_topics
        if self.uses_consumer_group_protocol and self.state is GroupState.STABLE and consumed is not None:
            return _commit_timestamp, consumed
        return None, _NO_TOPICS

    def make_group_metadata_tombstones(self) -> Sequence[Record]:
        """Return the record that removes the group from the log; none if it never was stored (generation 0)."""
        return [GroupMetadataRecord(self.group_id, None)] if self.generation_id > 0 else []


def _commit_timestamp(committed: OffsetAndMetadata) -> int:
    return committed.commit_timestamp
