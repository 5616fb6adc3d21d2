# SPDX-License-Identifier: Apache-2.0
"""What a node counts. Plain integers that the hot path can afford; metrics.py shows them to Prometheus."""

from bisect import bisect_left
from collections import Counter
from typing import Final

from coordinator.groups.outcome import RebalanceCause
from protocol.errors import ErrorCode

LATENCY_BUCKETS_S: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
)


class Histogram:
    """Counts of durations in fixed buckets, the last of which has no upper bound."""

    __slots__ = ("counts", "sum_ns")

    _bounds_ns: Final = tuple(int(bound * 1e9) for bound in LATENCY_BUCKETS_S)

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BUCKETS_S) + 1)
        self.sum_ns = 0

    def observe(self, duration_ns: int) -> None:
        """Count one duration."""
        self.counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self.sum_ns += duration_ns

    def cumulative(self) -> list[tuple[str, int]]:
        """Prometheus' buckets: (upper bound in seconds, how many were at most that)."""
        total = 0
        buckets = []
        for bound, count in zip((*map(str, LATENCY_BUCKETS_S), "+Inf"), self.counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets


class Stats:
    """The counters of one node. Labels are api names, error names and causes: all sets are bounded."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()  # by api key
        self.errors: Counter[tuple[int, int]] = Counter()  # by api key and error code
        self.unsupported_requests = 0
        self.malformed_requests = 0
        self.oversized_requests = 0
        self.oversized_answers = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections_accepted = 0
        self.connections_refused = 0
        self.connections_idle_closed = 0
        self.connections_unread_closed = 0
        self.limit_refusals: Counter[str] = Counter()  # by the setting that is the limit
        self.rebalances: Counter[RebalanceCause] = Counter()
        self.offset_commits = 0
        self.offset_fetches = 0
        self.log_fetches = 0
        self.log_fetched_bytes = 0
        self.offset_deletions = 0
        self.offset_expirations = 0
        self.groups_expired = 0
        self.wall_clock_jumps = 0
        self.flushes = Histogram()
        self.flush_failures = 0
        self.last_flush_ms = 0  # wall clock, when the newest one began that succeeded
        self.log_refusing_since_ms = 0  # wall clock; 0 while the log takes appends
        self.partitions_gained = 0
        self.partitions_lost = 0
        self.worker_restarts = 0
        self.partition_loads = 0
        self.partition_load_failures = 0
        self.partition_load_ms_max = 0
        self.records_loaded = 0
        self.unknown_records = 0
        self.open_transactions = 0
        self.cleanings = 0
        self.cleaning_failures = 0
        self.cleaned_bytes_freed = 0
        self.cleaner_last_run_ms = 0  # wall clock, as the next one
        self.last_cleaned_ms = 0
        self.dirty_ratio_max = 0.0
        self.uncleanable_partitions = 0
        self.loop_pause_ms_max = 0
        self.loop_stalls = 0
        self.recent_loop_pause_ms_max = 0  # see LoopWatch

    def flushed(self, duration_ns: int, began_wall_ms: int) -> None:
        """One flush has become durable."""
        self.flushes.observe(duration_ns)
        self.last_flush_ms = began_wall_ms

    def error(self, api_key: int, code: ErrorCode | int) -> None:
        """A request, or one part of it, was answered with an error."""
        self.errors[api_key, int(code)] += 1
