# SPDX-License-Identifier: Apache-2.0
"""One budget for what all connections of a process keep: requests that are collected, answers that wait to be sent.

One connection keeps little, and there may be thousands. A small request that is there at once is never kept, so members
go on whatever others do. Where the budget is used up, those go who have kept something for the longest time: half
requests whose rest does not come, and clients that do not read.
"""

from collections import Counter
from typing import Final, Protocol

from coordinator.telemetry.logs import get_logger

log = get_logger("gateway")

COUNTED_FROM_BYTES: Final = 16 * 1024
"""A connection that keeps less is not counted: the beginning of its next request, most of the time."""


class Keeper(Protocol):
    """A connection."""

    @property
    def peer_name(self) -> str:
        """The client's address, for the log."""

    def abort(self) -> None:
        """Close at once; what was kept is lost."""


class Kept:
    """What all connections of a process keep, in bytes."""

    def __init__(self, bytes_max: int, closed: Counter[str]) -> None:
        """Close connections where they keep more than `bytes_max` together (connections.unsent.max.bytes).

        `closed` counts them under `room`.
        """
        self._bytes_max = bytes_max
        self._closed = closed
        self._by_keeper: dict[Keeper, int] = {}
        """Those come first who have kept something for the longest time."""
        self.total_bytes = 0
        self.most_bytes = 0
        """The highest total since this was last reset."""

    def keeps(self, keeper: Keeper, count: int) -> None:
        """This one keeps so many bytes now; others, or it itself, may be closed for that."""
        if count < COUNTED_FROM_BYTES:
            self.forget(keeper)
            return
        self.total_bytes += count - self._by_keeper.get(keeper, 0)
        self._by_keeper[keeper] = count
        self.most_bytes = max(self.most_bytes, self.total_bytes)
        while self.total_bytes > self._bytes_max:
            self._close(next(iter(self._by_keeper)))

    def forget(self, keeper: Keeper) -> None:
        """This one keeps nothing any more."""
        self.total_bytes -= self._by_keeper.pop(keeper, 0)

    def _close(self, keeper: Keeper) -> None:
        count = self._by_keeper[keeper]
        self.forget(keeper)
        self._closed["room"] += 1
        log.warning(
            "closing a connection for the room that it takes",
            peer=keeper.peer_name,
            kept_bytes=count,
            reason="connections.unsent.max.bytes is used up",
        )
        keeper.abort()
