# SPDX-License-Identifier: Apache-2.0
"""One budget for the bytes of unsent responses, which closes the connections of peers that do not read.

A few bytes can ask for megabytes, on every connection. The budget counts the responses of a connection that wait for
their turn or for the disk, and the bytes in its transport while that is full (a transport holds up to 64 KiB before it
is full).

While the budget is used up, requests are handled only if their responses are small: members go on, larger requests
wait. If the budget stays used up, connections whose peers take nothing are closed, those with the most unsent bytes
first, and at last also those whose peers take little. A connection whose peer takes nothing is closed in any case,
later.
"""

from typing import Final, Protocol

from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats

log = get_logger("connection")

SETTING: Final = "connections.unsent.max.bytes"

CHECK_INTERVAL_MS: Final = 1_000
"""The interval of checks whether the peers make progress, in milliseconds."""

NOT_LOOKED_AT: Final = -1

OVER_MS_MAX: Final = 10 * CHECK_INTERVAL_MS
"""The time for which the budget may be used up before peers that take a little are closed, too."""


class BudgetWaiter(Protocol):
    """Work that waits for room in the budget."""

    def go_on_soon(self) -> None:
        """Continue the work in one of the next turns."""


class SlowReader(BudgetWaiter, Protocol):
    """A connection whose transport is full, because its peer does not read fast enough."""

    peer: str

    @property
    def bytes_not_yet_sent(self) -> int:
        """The bytes that the peer has not taken, as of the last `update_buffered_bytes`."""

    def update_buffered_bytes(self) -> bool:
        """Update the bytes that the transport holds; return whether the peer has taken any since the last call."""

    def abort(self) -> None:
        """Close the connection at once, and drop what the peer has not taken."""


class ResponseBudget:
    """Counts the unsent bytes of all connections of a node, and closes those whose peers do not read."""

    def __init__(self, stats: Stats, bytes_max: int, unread_ms_max: int) -> None:
        self._stats = stats
        self._unread_ms_max = unread_ms_max
        self._held: set[BudgetWaiter] = set()
        self._slow: dict[
            SlowReader, int
        ] = {}  # the connections whose transport is full, and since when their peers took nothing
        self._over_since_ms = NOT_LOOKED_AT
        self.bytes_max = bytes_max
        self.total_bytes = 0
        self.over = False

    # --- the hot path ---

    def add_unsent_bytes(self, count: int) -> None:
        """Add `count` unsent bytes to the budget."""
        self.total_bytes += count
        if self.total_bytes > self.bytes_max:
            self.over = True

    def remove_unsent_bytes(self, count: int) -> None:
        """Remove `count` unsent bytes, as they were taken or dropped."""
        self.total_bytes -= count
        if self.over and self.total_bytes <= self.bytes_max:
            self._relieve()

    def add_waiter(self, held: BudgetWaiter) -> None:
        """Let this work wait; its `go_on_soon` is called once the budget has room again."""
        if held not in self._held:
            self._held.add(held)
            self._stats.limit_refusals[SETTING] += 1

    def remove_waiter(self, held: BudgetWaiter) -> None:
        """Remove this work from those that wait."""
        self._held.discard(held)

    # --- slow readers ---

    def _relieve(self) -> None:
        self.over = False
        self._over_since_ms = NOT_LOOKED_AT
        held, self._held = self._held, set()
        for each in held:
            each.go_on_soon()

    def watch_slow_reader(self, reader: SlowReader) -> None:
        """Watch a connection whose transport is full."""
        self._slow.setdefault(reader, NOT_LOOKED_AT)

    def unwatch_slow_reader(self, reader: SlowReader) -> None:
        """Watch a connection no longer, as its transport has room or is closed."""
        self._slow.pop(reader, None)

    def forget_reader_and_waiter(self, reader: SlowReader) -> None:
        """Forget a connection that has ended."""
        self._slow.pop(reader, None)
        self.remove_waiter(reader)

    def close_stuck_readers(self, now_ms: int) -> None:
        """Check which peers have taken something, and close connections; called every `CHECK_INTERVAL_MS`."""
        for reader in list(self._slow):
            if reader.update_buffered_bytes() or self._slow[reader] == NOT_LOOKED_AT:
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
        for reader in sorted(self._slow, key=lambda reader: reader.bytes_not_yet_sent, reverse=True):
            if left <= self.bytes_max:
                break
            if patient and now_ms - self._slow[reader] < CHECK_INTERVAL_MS:
                continue  # it has taken something since the last check
            left -= reader.bytes_not_yet_sent
            self._close(reader, f"{SETTING} is used up")

    def _close(self, reader: SlowReader, reason: str) -> None:
        del self._slow[reader]
        self._stats.connections_unread_closed += 1
        log.warning(
            "closing a connection that does not read its answers",
            peer=reader.peer,
            unsent_bytes=reader.bytes_not_yet_sent,
            reason=reason,
        )
        reader.abort()
