# SPDX-License-Identifier: Apache-2.0
"""The rules that every reading task gets about the log as a whole."""

from collections.abc import Mapping

import msgspec


class FoldParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The limits and facts for the fold. `now_ms` and `since_ms` are ms since the epoch, the other times durations.

    `cleaned_to` has, by partition of the log, the offset below which compaction may have removed records.
    `num_partitions` is None if the number of the log's partitions is unknown: then placement is not checked. Rows with
    a time before `since_ms` are left out of sightings, since an earlier audit has reported them.
    """

    now_ms: int
    cleaned_to: Mapping[int, int]
    num_partitions: int | None
    metadata_bytes_max: int = 4096
    future_ms: int = 300_000
    clock_back_ms: int = 60_000
    since_ms: int = 0
    chunk_rows: int = 500_000

    def compacted_below_offset(self, partition: int) -> int:
        """Return the offset below which this partition may have gaps."""
        return self.cleaned_to.get(partition, 0)
