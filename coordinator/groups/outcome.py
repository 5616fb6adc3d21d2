# SPDX-License-Identifier: Apache-2.0
"""What a decision about a group asks of its runner: the one shape that all of them have."""

import enum
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from protocol.structs import Frozen
from storage.format.records import OffsetCommits, Record


class Caller(Protocol):
    """One request as a group sees it. The caller is also the name of its reply: a parked join or sync keeps it."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def api_version(self) -> int: ...


class RebalanceCause(enum.Enum):
    """Why a rebalance began; the label of a metric, so the set is fixed."""

    MEMBER_JOINED = "member_joined"
    MEMBER_REJOINED = "member_rejoined"
    LEADER_REJOINED = "leader_rejoined"
    METADATA_CHANGED = "metadata_changed"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    SYNC_EXPIRED = "sync_expired"
    OVER_CAPACITY = "over_capacity"
    STORE_FAILED = "store_failed"


class Event(msgspec.Struct, frozen=True):
    """Something that an operator may want to read in the log: `name` is the message, `fields` its values."""

    name: str
    fields: dict[str, Any]
    cause: RebalanceCause | None = None

    @property
    def notable(self) -> bool:
        """Whether an operator wants to read of it although all goes well: not of members that come and leave."""
        return self.cause is not None and self.cause not in _ORDINARY


_ORDINARY: Final = frozenset(
    {RebalanceCause.MEMBER_JOINED, RebalanceCause.MEMBER_REJOINED, RebalanceCause.MEMBER_LEFT}
)


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request, which need not be the one being handled."""

    caller: Caller
    response: Any


Change: TypeAlias = Record | OffsetCommits
"""What a decision writes to the log: a record, or those of one commit to one topic."""


class Outcome:
    """What a decision comes to: its records are appended and applied first, then the answer and the replies leave.

    `answer` is for the request itself: None where a reply to it is among the `replies`, or comes later. The records
    are taken all or none, in one batch, unless they are `independent` of each other, as tombstones are. Where the log
    takes none because they are too large, replies say so; the group then begins a rebalance if it `starts_over`.
    Without replies and that, RecordTooLarge is raised to the caller of the decision.
    """

    __slots__ = ("answer", "events", "independent", "records", "replies", "starts_over")

    def __init__(
        self,
        answer: Any = None,
        records: Iterable[Change] = (),
        *,
        independent: bool = False,
    ) -> None:
        self.answer = answer
        self.records: list[Change] = list(records)
        self.replies: list[Reply] = []
        self.events: list[Event] = []
        self.independent = independent
        self.starts_over = False

    def __repr__(self) -> str:
        return f"Outcome({self.answer!r}, {self.records!r}, {self.replies!r}, {self.events!r})"

    def reply(self, caller: Caller, response: Any) -> "Outcome":
        """Answer `caller`; returns self, so that a refusal can be one expression."""
        self.replies.append(Reply(caller, response))
        return self

    def note(self, name: str, cause: RebalanceCause | None = None, **fields: Any) -> None:
        """Leave an event for the operator's log."""
        self.events.append(Event(name, fields, cause))


class Instant(Frozen, frozen=True):
    """One moment on both clocks, in milliseconds.

    `mono` measures deadlines and never goes back; `wall` is the time since the epoch that records carry.
    """

    mono: int
    wall: int
