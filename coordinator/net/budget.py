# SPDX-License-Identifier: Apache-2.0
"""One budget for the bytes of answers that peers have not taken yet, and what becomes of peers that do not read.

A few bytes can ask for megabytes, on as many connections as there may be. What is counted of a connection: answers
that wait for their turn or for the disk, and what is in its transport once that asks for no more (a transport keeps
64 KiB without saying so).

While the budget is used up, requests are handled only if their answers are small: members go on, those who ask for more
waits. If it stays used up, connections that take nothing are closed, those that owe most first, and at last also those
that take little. A connection that takes nothing at all is closed in any case, later.
"""

from typing import Final, Protocol

from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats

log = get_logger("connection")

SETTING: Final = "connections.unsent.max.bytes"

CHECK_INTERVAL_MS: Final = 1_000
"""How often it is looked who has taken something."""

NOT_LOOKED_AT: Final = -1

OVER_MS_MAX: Final = 10 * CHECK_INTERVAL_MS
"""Once the budget has been used up for so long, it does not help a connection any more that it takes a little."""


class Held(Protocol):
    """What waits for the budget."""

    def go_on_soon(self) -> None:
        """Go on with what was held back."""


class Reader(Held, Protocol):
    """A connection, by what its peer takes of its answers."""

    peer: str

    @property
    def unread_bytes(self) -> int:
        """What its peer has not taken, as far as that is known."""

    def settle(self) -> bool:
        """Find out what the transport keeps; returns whether the peer has taken something since the last time."""

    def abort(self) -> None:
        """Close at once; what was not taken is lost."""


class Unsent:
    """What all connections of a node owe, in bytes."""

    def __init__(self, stats: Stats, bytes_max: int, unread_ms_max: int) -> None:
        self._stats = stats
        self._unread_ms_max = unread_ms_max
        self._held: set[Held] = set()
        self._slow: dict[Reader, int] = {}  # those whose transport is full, and since when they took nothing
        self._over_since_ms = NOT_LOOKED_AT
        self.bytes_max = bytes_max
        self.total_bytes = 0
        self.over = False

    # --- the hot path ---

    def add(self, count: int) -> None:
        """So many bytes more are owed."""
        self.total_bytes += count
        if self.total_bytes > self.bytes_max:
            self.over = True

    def remove(self, count: int) -> None:
        """So many bytes were taken, or given up."""
        self.total_bytes -= count
        if self.over and self.total_bytes <= self.bytes_max:
            self._relieve()

    def hold(self, held: Held) -> None:
        """This must wait: it will be asked to go on once the budget is not used up any more."""
        if held not in self._held:
            self._held.add(held)
            self._stats.limit_refusals[SETTING] += 1

    def let_go(self, held: Held) -> None:
        """This waits no longer, whatever becomes of the budget."""
        self._held.discard(held)

    # --- slow readers ---

    def _relieve(self) -> None:
        self.over = False
        self._over_since_ms = NOT_LOOKED_AT
        held, self._held = self._held, set()
        for each in held:
            each.go_on_soon()

    def full(self, reader: Reader) -> None:
        """The connection's transport is full."""
        self._slow.setdefault(reader, NOT_LOOKED_AT)

    def empty(self, reader: Reader) -> None:
        """The connection's transport is not full any more, or gone."""
        self._slow.pop(reader, None)

    def forget(self, reader: Reader) -> None:
        """The connection is gone."""
        self._slow.pop(reader, None)
        self.let_go(reader)

    def check(self, now_ms: int) -> None:
        """Look who has taken something, and close who has to go; to be called every `CHECK_INTERVAL_MS`."""
        for reader in list(self._slow):
            if reader.settle() or self._slow[reader] == NOT_LOOKED_AT:
                self._slow[reader] = now_ms
        for reader, since_ms in list(self._slow.items()):
            if now_ms - since_ms >= self._unread_ms_max:
                self._close(reader, "takes nothing")
        if not self.over:
            return
        if self._over_since_ms == NOT_LOOKED_AT:
            self._over_since_ms = now_ms
        self._make_room(now_ms)

    def _make_room(self, now_ms: int) -> None:
        patient = now_ms - self._over_since_ms < OVER_MS_MAX
        left = self.total_bytes
        for reader in sorted(self._slow, key=lambda reader: reader.unread_bytes, reverse=True):
            if left <= self.bytes_max:
                break
            if patient and now_ms - self._slow[reader] < CHECK_INTERVAL_MS:
                continue  # it has taken something since the last check
            left -= reader.unread_bytes
            self._close(reader, f"{SETTING} is used up")

    def _close(self, reader: Reader, reason: str) -> None:
        del self._slow[reader]
        self._stats.connections_unread_closed += 1
        log.warning(
            "closing a connection that does not read its answers",
            peer=reader.peer,
            unsent_bytes=reader.unread_bytes,
            reason=reason,
        )
        reader.abort()
