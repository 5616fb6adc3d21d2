# SPDX-License-Identifier: Apache-2.0
"""The part of a log that does not change any more, and so can be compacted, and read while its owner appends."""

from collections.abc import Sequence

from protocol.newtypes import Offset, Partition
from storage.partition.log import PartitionLog
from storage.partition.segment import Segment


class RolledSegments:
    """The first segments of a log, except the one being written, as far as they are durable."""

    __slots__ = ("bound", "end_offset", "log", "segments")

    def __init__(self, log: PartitionLog, segments: Sequence[Segment], bound: Offset) -> None:
        self.log = log
        """The log itself, only as an identity: its methods belong to the log's owner."""
        self.segments = tuple(segments)
        self.bound = bound
        """The offset at which the next segment starts."""
        self.end_offset = log.end_offset

    @property
    def partition(self) -> Partition:
        """The partition of the log."""
        return self.log.partition

    @property
    def base_offsets(self) -> list[Offset]:
        """The base offsets of all segments."""
        return [segment.base_offset for segment in self.segments]


def select_rolled_segments(log: PartitionLog, recovery_point: Offset) -> RolledSegments | None:
    """Return the rolled segments of a log that is on disk up to `recovery_point`; None if there are none."""
    segments, bound = [], Offset(0)
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        if following.base_offset > recovery_point:
            break
        segments.append(segment)
        bound = following.base_offset
    return RolledSegments(log, segments, bound) if segments else None
