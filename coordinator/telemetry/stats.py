# SPDX-License-Identifier: Apache-2.0
"""The counters of a node: plain integers that the hot path can afford; metrics.py shows them to Prometheus.

Compiled, because every request is counted here several times.
"""

from collections import Counter
from typing import Final

from coordinator.groups.rebalance_timings import RebalanceCause, RebalanceTimings
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

LATENCY_BUCKETS_S: Final[tuple[float, ...]] = (
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

REBALANCE_BUCKETS_S: Final[tuple[float, ...]] = (
    0.01,
    0.1,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
)


class Histogram:
    """Counts of durations in fixed buckets, the last of which has no upper bound."""

    __slots__ = ("bounds_ns", "bounds_s", "counts", "sum_ns")

    def __init__(self, bounds_s: tuple[float, ...] = LATENCY_BUCKETS_S) -> None:
        self.bounds_s = bounds_s
        self.bounds_ns = [int(bound * 1e9) for bound in bounds_s]
        self.counts = [0] * (len(bounds_s) + 1)
        self.sum_ns = 0

    def observe(self, duration_ns: int) -> None:
        """Count one duration, in ns."""
        bucket = 0
        for bound_ns in self.bounds_ns:  # most are in the first ones
            if duration_ns <= bound_ns:
                break
            bucket += 1
        self.counts[bucket] += 1
        self.sum_ns += duration_ns

    def cumulative(self) -> list[tuple[str, int]]:
        """Return Prometheus' buckets: (upper bound in seconds, the number of durations up to that)."""
        total = 0
        buckets = []
        for bound, count in zip((*map(str, self.bounds_s), "+Inf"), self.counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets


class ApiStats:
    """The counters of the requests of one api."""

    __slots__ = ("durations", "handled")

    def __init__(self) -> None:
        self.handled = 0
        self.durations = Histogram()
        """The times from the start of a request until its response is handed to the socket."""


class Stats:
    """The counters of one node. Labels are api names, error names and causes: all sets are bounded."""

    def __init__(self) -> None:
        self.apis = {int(key): ApiStats() for key in ApiKey}
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
        self.rebalance_durations = {cause: Histogram(REBALANCE_BUCKETS_S) for cause in RebalanceCause}
        self.slowest_join_ms: Counter[RebalanceCause] = Counter()
        self.assignment_ms: Counter[RebalanceCause] = Counter()
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
        self.last_flush_ms = 0  # wall clock, when the newest successful one began
        self.log_refusing_since_ms = 0  # wall clock; 0 while the log takes appends
        self.partitions_gained = 0
        self.partitions_lost = 0
        self.worker_restarts = 0
        self.upstream_up: bool | None = (
            None  # whether the newest look at the cluster succeeded; None without one
        )
        self.upstream_brokers: dict[int, bool] = {}  # by id, whether it answers
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

    def count_request(self, api_key: int) -> None:
        """Count a request that is decoded and goes to its handler."""
        self.apis[api_key].handled += 1

    def count_response(self, api_key: int, duration_ns: int) -> None:
        """Count a response that is handed to the socket, `duration_ns` after the request was begun."""
        self.apis[api_key].durations.observe(duration_ns)

    def count_finished_rebalance(self, progress: RebalanceTimings) -> None:
        """Count a rebalance that is over."""
        cause = progress.cause
        self.rebalance_durations[cause].observe(progress.total_duration_ms * 1_000_000)
        self.slowest_join_ms[cause] += progress.slowest_join_ms
        self.assignment_ms[cause] += progress.assignment_ms

    def count_flush(self, duration_ns: int, began_wall_ms: int) -> None:
        """Count a flush that has become durable."""
        self.flushes.observe(duration_ns)
        self.last_flush_ms = began_wall_ms

    def count_error(self, api_key: int, code: ErrorCode | int) -> None:
        """Count an error in the response to a request, or to one part of a request."""
        self.errors[api_key, int(code)] += 1
