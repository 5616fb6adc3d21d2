# SPDX-License-Identifier: Apache-2.0
"""The interface by which a partition and its offsets use a group of any kind."""

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from coordinator.groups.config import GroupEnvironment
from coordinator.groups.outcome import Instant, Outcome, Reply
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.newtypes import GroupId
from storage.format.records import OffsetAndMetadata, Record

Since = Callable[[OffsetAndMetadata], int]
"""Returns the start of an offset's retention time, in milliseconds of the wall clock."""


class Group(Protocol):
    """A group of any kind: methods that decide and return an outcome, checks, and the time of its next deadline."""

    wakeup_ms: int
    """The earliest moment at which `expire_due_deadlines` has something to do, in monotonic milliseconds, or NEVER."""

    @property
    def group_id(self) -> GroupId:
        """The id of the group."""

    @property
    def kind(self) -> str:
        """The group's type in ListGroups."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type of the members; None if the group never had any."""

    @property
    def generation_id(self) -> int:
        """The number of the group's generation; 0 if the log holds no record of the group itself."""

    @property
    def state(self) -> enum.Enum:
        """The group's state; its value is the spelling that clients see."""

    @property
    def is_dead(self) -> bool:
        """True if the group has left memory, or is about to."""

    @property
    def is_empty(self) -> bool:
        """True if the group is in state Empty: it has no members left, and accepts commits without a generation."""

    @property
    def has_members_or_pending(self) -> bool:
        """True if the group has members, or has given out ids to members that have not joined yet."""

    @property
    def member_count(self) -> int:
        """The number of members."""

    # --- records ---

    def apply_record(self, record: Record) -> bool:
        """Apply a record of the group itself, live and while loading.

        Returns False, and changes nothing, for the record that removes the group itself from the log.
        """

    def forget_records(self) -> None:
        """Reset everything but the group's offsets, because the group itself was removed from the log."""

    # --- steps ---

    def on_loaded(self, env: GroupEnvironment, now: Instant) -> Outcome:
        """Begin the group's sessions after it was loaded from the log."""

    def expire_due_deadlines(self, env: GroupEnvironment, now: Instant, due_ms: int) -> Outcome:
        """Expire everything that was due by `due_ms`, and set `wakeup_ms`."""

    def replace_refused_outcome(
        self, env: GroupEnvironment, outcome: Outcome, error: ErrorCode, now: Instant
    ) -> Outcome:
        """Start over after the log has refused the records of an outcome; return the outcome to carry out instead."""

    def unload_and_fail_requests(self, error: ErrorCode) -> list[Reply]:
        """Make the group Dead because its partition is lost, and return the error replies to its waiting requests."""

    def start_counting_in_totals(self) -> None:
        """Count the group in the node's totals from now on."""

    def mark_dead_and_uncount(self) -> None:
        """Make the group Dead, and subtract it from the node's totals."""

    def suspend_as_dead(self) -> None:
        """Make the group Dead while its offsets are deleted in steps."""

    def resume_as_empty(self) -> None:
        """Make the group Empty again, with the offsets that remain."""

    # --- offsets ---

    def validate_commit(self, request: OffsetCommitRequest) -> ErrorCode:
        """Return NONE if this commit is accepted, else its error."""

    def validate_delete_group(self) -> ErrorCode:
        """Return NONE if the group may be deleted, else the error."""

    def validate_delete_offsets(self) -> ErrorCode:
        """Return NONE if offsets of the group may be deleted, else the error."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member consumes the topic now, as far as known."""

    def offset_expiration_condition(self) -> tuple[Since | None, frozenset[str]]:
        """Return a function for the start of an offset's retention time, and the topics whose offsets do not expire.

        None in place of the function means that no offset of the group expires.
        """

    def make_group_metadata_tombstones(self) -> Sequence[Record]:
        """Return the records that remove the group itself from the log."""
