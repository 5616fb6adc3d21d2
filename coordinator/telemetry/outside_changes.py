# SPDX-License-Identifier: Apache-2.0
"""Logs who changed a group from outside: its offsets, or its members, by a client that is no member of it.

The lines are for operators who have to find out afterwards who moved an offset. Changes of one kind to one group by one
client that follow each other within a second are one line. A commit of a member has none.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from coordinator.telemetry.log_limits import LINES_PER_PERIOD_MAX, shorten_value
from coordinator.telemetry.logs import get_logger

log = get_logger("changes")

INTERVAL_MS: Final = 1_050
"""The milliseconds for which changes are collected; longer than the period of the log's limit of lines."""
LINES_PER_INTERVAL_MAX: Final = LINES_PER_PERIOD_MAX
NAMED_MAX: Final = 20
"""The number of partitions or members that one line names."""
WAITING_MAX: Final = 10_000
"""The number of lines that wait to be written; further changes are only counted."""


class OutsideChange(StrEnum):
    """A kind of change; the value is the event of its log line."""

    OFFSETS_COMMITTED = "offsets were committed from outside the group"
    OFFSETS_DELETED = "offsets were deleted from outside the group"
    MEMBERS_REMOVED = "members were removed from outside the group"
    GROUP_DELETED = "group deleted"
    TAKEN_OVER = "a group was taken over from the cluster"
    GIVEN_BACK = "a group was given back to the cluster"


class Requester(Protocol):
    """The client of a request."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


OffsetMove = tuple[int | None, int | None]
"""A partition's committed offset before and after a change; None for no offset."""


class _Waiting(msgspec.Struct):
    """The contents of the line of a change."""

    requests: int = 0
    offsets: int = 0
    members: int = 0
    moves: dict[str, OffsetMove] = {}
    reasons: dict[str, str] = {}


class OutsideChangeLog:
    """Collects changes, and writes their lines INTERVAL_MS after the first of them."""

    def __init__(self) -> None:
        self.call_after: Callable[[int, Callable[[Any], None]], object] = lambda _ms, _callback: None
        """Schedules a callback after a delay in milliseconds; the node sets this to its timers."""
        self._is_scheduled = False
        self._waiting: dict[tuple[OutsideChange, str, str, str], _Waiting] = {}
        self._uncollected = 0

    def add_offset_moves(
        self,
        change: OutsideChange,
        group: str,
        requester: Requester,
        count: int,
        moves: Iterable[tuple[str, int, OffsetMove]],
    ) -> None:
        """Add a change of `count` offsets; `moves` are the first of them, by topic and partition."""
        waiting = self._find_or_add(change, group, requester)
        if waiting is None:
            return
        waiting.offsets += count
        for topic, partition, (before, after) in moves:
            place = f"{topic}-{partition}"
            known = waiting.moves.get(place)
            if known is not None:
                waiting.moves[place] = (known[0], after)
            elif len(waiting.moves) < NAMED_MAX:
                waiting.moves[place] = (before, after)

    def add_removed_members(
        self, group: str, requester: Requester, reasons: Sequence[tuple[str, str]]
    ) -> None:
        """Add the removal of members, each with the reason that the request gives."""
        waiting = self._find_or_add(OutsideChange.MEMBERS_REMOVED, group, requester)
        if waiting is None:
            return
        waiting.members += len(reasons)
        for member, reason in reasons:
            if len(waiting.reasons) < NAMED_MAX:
                waiting.reasons[shorten_value(member)] = shorten_value(reason)

    def _find_or_add(self, change: OutsideChange, group: str, requester: Requester) -> _Waiting | None:
        # As short as the log shows them: a client chooses names of up to 32 KB, and thousands of lines may wait.
        key = (change, shorten_value(group), shorten_value(requester.client_id), requester.client_host)
        waiting = self._waiting.get(key)
        if waiting is None:
            if len(self._waiting) >= WAITING_MAX:
                self._uncollected += 1
                return None
            waiting = self._waiting[key] = _Waiting()
        waiting.requests += 1
        self._schedule()
        return waiting

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self.call_after(INTERVAL_MS, self._write_due_lines)

    def _write_due_lines(self, _: object) -> None:
        self._is_scheduled = False
        self.write_due_lines()
        if self._waiting:
            self._schedule()

    def write_due_lines(self) -> None:
        """Write the lines of the changes collected so far, the oldest first; those beyond the log's limit wait."""
        for key in list(self._waiting)[:LINES_PER_INTERVAL_MAX]:
            self._write(key, self._waiting.pop(key))
        if self._uncollected:
            log.warning("more changes from outside than the log has room for", changes=self._uncollected)
            self._uncollected = 0

    def write_all_lines(self) -> None:
        """Write the lines of all changes, at a node's stop; the log's own limit may sum them up."""
        while self._waiting or self._uncollected:
            self.write_due_lines()

    def _write(self, key: tuple[OutsideChange, str, str, str], waiting: _Waiting) -> None:
        change, group, client_id, address = key
        fields: dict[str, object] = {"group": group, "client_id": client_id, "address": address}
        if waiting.requests > 1:
            fields["requests"] = waiting.requests
        if change is OutsideChange.MEMBERS_REMOVED:
            fields |= {"members": waiting.members, "removed": waiting.reasons}
        else:
            fields |= {"offsets": waiting.offsets, "moved": waiting.moves}
        log.info(change.value, **fields)
