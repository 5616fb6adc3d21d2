# SPDX-License-Identifier: Apache-2.0
"""The outcome of a decision about a group, in the form that its runner carries out."""

from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from coordinator.groups.progress import RebalanceCause, RebalanceProgress
from protocol.compiled_struct import FieldsValue
from protocol.mypyc_shim import mypyc_attr
from storage.format.records import Record


class RequestRef(Protocol):
    """One request as a group sees it. The request also identifies its reply: a parked join or sync holds it."""

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
    are appended all or none, in one batch. Those that are `independent` of each other, as tombstones are, may be in
    several if one batch does not hold them. If the log refuses them because they are too large, the replies get an
    error and the group begins a rebalance if it `starts_over`. Without either, RecordTooLarge is raised to the
    caller of the decision.
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
        self.ended_rebalance: RebalanceProgress | None = None
        """The rebalance that is over once the records are appended."""

    def __repr__(self) -> str:
        return f"Outcome({self.answer!r}, {self.records!r}, {self.replies!r}, {self.events!r})"

    def reply(self, caller: RequestRef, response: Any) -> "Outcome":
        """Add the reply to `caller`, and return self, so that a refusal can be one expression."""
        self.replies.append(Reply(caller, response))
        return self

    def add_event(self, name: str, cause: RebalanceCause | None = None, **fields: Any) -> None:
        """Add an event for the log at debug; the begin of a rebalance at info, unless members just join and leave."""
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
