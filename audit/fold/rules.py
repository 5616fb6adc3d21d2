# SPDX-License-Identifier: Apache-2.0
"""What the fold has to know about the log as a whole; it goes to every reading task."""

from collections.abc import Mapping

import msgspec


class FoldRules(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and facts. Times are milliseconds since the epoch, or milliseconds.

    `cleaned_to` has, by partition of the log, the offset below which compaction may have taken records away.
    `num_partitions` is None where it is not known how many the log has: then nothing is said about placement.
    What carries a time before `since_ms` is left out of sightings, since an earlier audit has reported it.
    """

    now_ms: int
    cleaned_to: Mapping[int, int]
    num_partitions: int | None
    metadata_bytes_max: int = 4096
    future_ms: int = 300_000
    clock_back_ms: int = 60_000
    since_ms: int = 0
    chunk_rows: int = 500_000

    def compacted_below(self, partition: int) -> int:
        """The offset below which this partition may have gaps."""
        return self.cleaned_to.get(partition, 0)
