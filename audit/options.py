# SPDX-License-Identifier: Apache-2.0
"""What an audit is asked to do, and what it takes for normal."""

from typing import Final, Literal

import msgspec

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

Severity = Literal["info", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
"""From the least to the gravest."""


class AuditLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Where normal ends. Those with a name of Kafka's have its default, and should be what the servers have."""

    offsets_retention_ms: int = 7 * DAY_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    offset_metadata_max_bytes: int = 4096
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    transaction_max_timeout_ms: int = 15 * MINUTE_MS
    compaction_grace_ms: int = HOUR_MS
    """How long a log may wait once there is enough to compact."""
    future_ms: int = 5 * MINUTE_MS
    clock_back_ms: int = MINUTE_MS
    rebalances_per_hour: int = 20
    arrivals_per_hour: int = 6
    """How often a member may come back within an hour, for each that is there at a time."""
    hot_partition_factor: float = 4.0
    """A partition is hot with so many times the mean of all..."""
    hot_partition_records: int = 10_000
    """...and at least so many records."""
    growth_factor: float = 2.0
    growth_bytes: int = 64 << 20


class Cutting(msgspec.Struct, frozen=True, kw_only=True):
    """How the work is cut up; what is found does not depend on it."""

    chunk_rows: int = 500_000
    """Rows that are folded together."""
    merged_rows: int = 500_000
    """Up to so many partial summaries are merged in one task."""


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One audit. `as_of_ms` is its now, in milliseconds since the epoch; `since_ms` leaves older history out.

    `compacted` is the directory below which copies of the logs are compacted; None: they are not.
    """

    log_dirs: tuple[str, ...]
    out: str
    as_of_ms: int
    against: str | None = None
    compacted: str | None = None
    since_ms: int = 0
    num_partitions: int | None = None
    limits: AuditLimits = AuditLimits()
    cutting: Cutting = Cutting()
