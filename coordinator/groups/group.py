# SPDX-License-Identifier: Apache-2.0
"""What a partition and its offsets need of a group, of whatever kind it is."""

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from coordinator.groups.config import Environment
from coordinator.groups.outcome import Instant, Outcome, Reply
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.names import GroupId
from storage.format.records import OffsetAndMetadata, Record

Since = Callable[[OffsetAndMetadata], int]
"""From when on the retention time of an offset counts, in milliseconds of the wall clock."""


class Group(Protocol):
    """A group as its runner sees it: it decides, says when it wants to be called, and can be taken away."""

    wakeup_ms: int
    """The earliest moment at which `expire` has something to do, monotonic milliseconds; NEVER for none."""

    @property
    def group_id(self) -> GroupId:
        """The group's name."""

    @property
    def kind(self) -> str:
        """What ListGroups calls its type."""

    @property
    def protocol_type(self) -> str | None:
        """What its members call what they do; None for a group that never had any."""

    @property
    def generation_id(self) -> int:
        """How often its membership has changed; 0 where the log holds nothing of the group itself."""

    @property
    def state(self) -> enum.Enum:
        """Where it is; the value is the spelling that clients see."""

    @property
    def is_dead(self) -> bool:
        """Whether it has left memory, or is about to."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and takes commits from outside."""

    @property
    def is_worth_keeping(self) -> bool:
        """Whether there is anything of it that is not in the log alone: members, or ids that were given out."""

    # --- steps ---

    def on_loaded(self, env: Environment, now: Instant) -> Outcome:
        """It has come from the log."""

    def expire(self, env: Environment, now: Instant, due_ms: int) -> Outcome:
        """Do everything that was due by `due_ms`, and set `wakeup_ms`."""

    def refuse(self, env: Environment, outcome: Outcome, error: ErrorCode, now: Instant) -> Outcome:
        """What an outcome becomes whose records the log did not take."""

    def abandon(self, error: ErrorCode) -> list[Reply]:
        """Its partition is lost: it is Dead, and the requests that wait in it get the error."""

    def enter_memory(self) -> None:
        """It counts in the node's books from now on."""

    def leave_memory(self) -> None:
        """It counts no more; it is Dead."""

    def begin_deletion(self) -> None:
        """Its offsets are being deleted in steps: it is Dead meanwhile."""

    def end_deletion(self) -> None:
        """It is Empty as before, with the offsets that are left."""

    # --- what it says of offsets ---

    def validate_commit(self, request: OffsetCommitRequest) -> ErrorCode:
        """Whether this commit may be taken."""

    def validate_delete_group(self) -> ErrorCode:
        """Whether the group may be deleted."""

    def validate_delete_offsets(self) -> ErrorCode:
        """Whether offsets of the group may be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic now, as far as can be known."""

    def retention(self) -> tuple[Since | None, frozenset[str]]:
        """From when on an offset's retention time counts, None for never; and the topics that do not expire at all."""

    def tombstones(self) -> Sequence[Record]:
        """The records that remove the group itself from the log."""
