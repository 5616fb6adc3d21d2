# SPDX-License-Identifier: Apache-2.0
"""The status of a group, by the trend of its offsets: whether it gets on with its work. Pure: no I/O, no clock.

The rules are Burrow's (its wiki, "Consumer Lag Evaluation Rules"): a partition that is behind is STOPPED without new
commits, STALLED if new commits have the same offset, and WARN if the offset moves and the lag only grows. A group has
the worst status of its partitions. Burrow keeps the last ten commits of each partition; here the last
WINDOW_MEASUREMENTS measurements count, and of each partition only what the rules ask for is kept.
"""

import enum
from typing import Final

WINDOW_MEASUREMENTS: Final = 10


class LagStatus(enum.IntEnum):
    """The status of a partition or a group; the larger value is the worse one."""

    OK = 0
    WARN = 1
    STALLED = 2
    STOPPED = 3


class PartitionTrend:
    """The result of all measurements of a partition since the group fell behind there; times in Unix milliseconds."""

    __slots__ = (
        "_lag",
        "_lag_before_growth",
        "_moved_ms",
        "_offset",
        "_oldest_end",
        "_shrank_ms",
        "behind_since_ms",
    )

    def __init__(self, offset: int, end: int, now_ms: int) -> None:
        self._oldest_end = end  # of the ends that were seen, and that the group has not reached
        self.behind_since_ms = now_ms
        """When the oldest end was seen that the group has not reached."""
        self._offset = offset
        self._moved_ms = now_ms  # when the offset was seen first
        self._lag = end - offset
        self._lag_before_growth = end - offset  # when it last became smaller
        self._shrank_ms = now_ms

    def follow(self, offset: int, end: int, now_ms: int) -> None:
        """Take in one more measurement, in which the group is still behind."""
        lag = end - offset
        if offset >= self._oldest_end:
            self._oldest_end = end
            self.behind_since_ms = now_ms
        if offset < self._offset or lag < self._lag:  # it was set back, or catches up
            self._lag_before_growth = lag
            self._shrank_ms = now_ms
        if offset != self._offset:
            self._offset = offset
            self._moved_ms = now_ms
        self._lag = lag

    def find_status(self, committed_ms: int, now_ms: int, window_ms: int) -> LagStatus:
        """Return the status of the partition, whose newest commit was at `committed_ms` (Unix milliseconds).

        A trend begins when the group falls behind, so a partition is OK for the length of the window after the group
        has reached its end.
        """
        began_ms = now_ms - window_ms
        if self._moved_ms <= began_ms:
            return LagStatus.STOPPED if committed_ms <= began_ms else LagStatus.STALLED
        if self._shrank_ms <= began_ms and self._lag > self._lag_before_growth:
            return LagStatus.WARN
        return LagStatus.OK
