# SPDX-License-Identifier: Apache-2.0
"""The options of an audit, and the limits of normal behaviour."""

from typing import Final, Literal

import msgspec

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

Severity = Literal["info", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
"""The severities from the least to the gravest."""


class CheckThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of normal behaviour; those with Kafka's names have its defaults, and should equal the servers'."""

    offsets_retention_ms: int = 7 * DAY_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    offset_metadata_max_bytes: int = 4096
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    transaction_max_timeout_ms: int = 15 * MINUTE_MS
    compaction_grace_ms: int = HOUR_MS
    """The time for which a log may wait for compaction once there is enough to compact."""
    future_ms: int = 5 * MINUTE_MS
    clock_back_ms: int = MINUTE_MS
    rebalances_per_hour: int = 20
    arrivals_per_hour: int = 6
    """The number of times that a member may come back within an hour, for each member that is present at a time."""
    hot_partition_factor: float = 4.0
    """A hot partition has more than this multiple of the mean of all partitions..."""
    hot_partition_records: int = 10_000
    """...and at least this number of records."""
    growth_factor: float = 2.0
    growth_bytes: int = 64 << 20


class WorkSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of the parts of the work, on which the findings do not depend."""

    chunk_rows: int = 500_000
    """The number of rows that are folded together."""
    merged_rows: int = 500_000
    """The limit of partial summaries that are merged in one task."""


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one audit.

    `as_of_ms` counts as the current time, and history before `since_ms` is left out, both in ms since the epoch.
    `compacted` is the directory below which copies of the logs are compacted, or None to compact none.
    """

    log_dirs: tuple[str, ...]
    out: str
    as_of_ms: int
    against: str | None = None
    compacted: str | None = None
    since_ms: int = 0
    end_groups: frozenset[str] = frozenset()
    """The groups whose committed offsets are the ends of topics; no member joins them."""
    num_partitions: int | None = None
    limits: CheckThresholds = CheckThresholds()
    cutting: WorkSizes = WorkSizes()
