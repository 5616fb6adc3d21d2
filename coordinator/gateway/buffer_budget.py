# SPDX-License-Identifier: Apache-2.0
"""One budget for the bytes that all connections of a process hold: collected requests, and unsent responses.

One connection holds little, and there may be thousands. A small request that arrives whole is never held, so members go
on whatever others do. When the budget is used up, the connections are closed that have held something for the longest
time: half requests whose rest does not come, and clients that do not read.
"""

from collections import Counter
from typing import Final, Protocol

from coordinator.telemetry.logs import get_logger

log = get_logger("gateway")

COUNTED_FROM_BYTES: Final = 16 * 1024
"""The least number of bytes that counts for a connection: most hold the beginning of their next request."""


class BufferHolder(Protocol):
    """A connection that holds bytes of the budget."""

    @property
    def peer_name(self) -> str:
        """The client's address, for the log."""

    def abort(self) -> None:
        """Close the connection at once, and drop the bytes that it holds."""


class BufferBudget:
    """Counts the bytes that all connections of a process hold, and closes some if they hold too many."""

    def __init__(self, bytes_max: int, closed: Counter[str]) -> None:
        """Close connections while they hold more than `bytes_max` together (connections.unsent.max.bytes).

        `closed` counts the closed ones under `room`.
        """
        self._bytes_max = bytes_max
        self._closed = closed
        self._by_holder: dict[BufferHolder, int] = {}
        """The bytes of each connection; the one that has held something for the longest time comes first."""
        self.total_bytes = 0
        self.most_bytes = 0
        """The highest total since this was last reset."""

    def set_bytes_closing_excess(self, holder: BufferHolder, count: int) -> None:
        """Set how many bytes a connection holds, which may close other connections or this one."""
        if count < COUNTED_FROM_BYTES:
            self.forget(holder)
            return
        self.total_bytes += count - self._by_holder.get(holder, 0)
        self._by_holder[holder] = count
        self.most_bytes = max(self.most_bytes, self.total_bytes)
        while self.total_bytes > self._bytes_max:
            self._close(next(iter(self._by_holder)))

    def forget(self, holder: BufferHolder) -> None:
        """Count nothing for this connection any more."""
        self.total_bytes -= self._by_holder.pop(holder, 0)

    def _close(self, holder: BufferHolder) -> None:
        count = self._by_holder[holder]
        self.forget(holder)
        self._closed["room"] += 1
        log.warning(
            "closing a connection for the room that it takes",
            peer=holder.peer_name,
            kept_bytes=count,
            reason="connections.unsent.max.bytes is used up",
        )
        holder.abort()
