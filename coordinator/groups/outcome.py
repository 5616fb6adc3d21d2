# SPDX-License-Identifier: Apache-2.0
"""The outcome of a decision about a group, which GroupMetadataManager carries out."""

from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from coordinator.groups.rebalance_timings import RebalanceCause, RebalanceTimings
from protocol.compiled_struct import FieldsValue
from protocol.mypyc_shim import mypyc_attr
from storage.format.records import Record


class RequestRef(Protocol):
    """One request as a group sees it; while a join or sync waits, the group keeps it, to reply to it later."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def api_version(self) -> int: ...


class Event(msgspec.Struct, frozen=True):
    """An event that an operator may want to read in the log: `name` is the message, `fields` its values.

    A `notable` event is logged at info, another at debug. An event with a `cause` reports the begin of a rebalance.
    """

    name: str
    fields: dict[str, Any]
    cause: RebalanceCause | None
    notable: bool


_ORDINARY: Final = frozenset(
    {RebalanceCause.MEMBER_JOINED, RebalanceCause.MEMBER_REJOINED, RebalanceCause.MEMBER_LEFT}
)


class Reply(msgspec.Struct, frozen=True):
    """The response to one request, which need not be the one being handled."""

    caller: RequestRef
    response: Any


class Outcome:
    """The result of a decision: its records are appended and applied first, then the answer and replies are sent.

    `answer` is for the request itself: None if a reply to it is among the `replies`, or comes later. The records
    are appended all or none, in one batch. Records that are `independent` of each other, such as tombstones, may be
    in several batches if one does not hold them. If the log refuses the records as too large, the replies are
    replaced by errors, and a group whose outcome has `starts_over` set begins a rebalance. If the outcome has neither
    replies nor `starts_over`, RecordTooLarge is raised instead.
    """

    __slots__ = ("answer", "ended_rebalance", "events", "independent", "records", "replies", "starts_over")

    def __init__(
        self,
        answer: Any = None,
        records: Iterable[Record] = (),
        *,
        independent: bool = False,
    ) -> None:
        self.answer = answer
        self.records: list[Record] = list(records)
        self.replies: list[Reply] = []
        self.events: list[Event] = []
        self.independent = independent
        self.starts_over = False
        self.ended_rebalance: RebalanceTimings | None = None
        """The rebalance that is over once the records are appended."""

    def __repr__(self) -> str:
        return f"Outcome({self.answer!r}, {self.records!r}, {self.replies!r}, {self.events!r})"

    def reply(self, caller: RequestRef, response: Any) -> "Outcome":
        """Add the reply to `caller`, and return self, so that a refusal can be one expression."""
        self.replies.append(Reply(caller, response))
        return self

    def add_event(self, name: str, cause: RebalanceCause | None = None, **fields: Any) -> None:
        """Add an event, logged at debug, or at info for a `cause` other than a member that joins, rejoins or leaves."""
        notable = cause is not None and cause not in _ORDINARY
        self.events.append(Event(name, fields, cause, notable))

    def add_notable_event(self, name: str, **fields: Any) -> None:
        """Add an event for the log at info."""
        self.events.append(Event(name, fields, None, True))


@mypyc_attr(acyclic=True)
class Instant(FieldsValue):
    """One moment on both clocks, in milliseconds.

    `mono` measures deadlines and never goes back; `wall` is the time since the epoch that records carry.
    """

    __match_args__: Final = ("mono", "wall")
    __slots__ = __match_args__

    def __init__(self, mono: int, wall: int) -> None:
        self.mono: Final = mono
        self.wall: Final = wall
