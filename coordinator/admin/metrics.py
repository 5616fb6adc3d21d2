# SPDX-License-Identifier: Apache-2.0
"""The metrics of a node for Prometheus, in base units, made from `Stats` at each scrape.

Names, labels and sentences come from `reference`, from which docs/metrics.md is made, too.

No label holds a group, a member or a topic, because clients choose their names without a bound. The exceptions are
bounded: the few groups of `metrics.groups.top`, and the lag (`lag_metrics.py`).
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference import (
    group_metrics,
    log_metrics,
    node_metrics,
    offset_metrics,
    request_metrics,
)
from coordinator.admin.reference.metric_help_types import CounterHelp, GaugeHelp
from coordinator.groups.rebalance_timings import RebalanceCause
from coordinator.jobs.group_counts import GroupCounts, count_groups
from coordinator.jobs.limit_watch import LimitWatch
from coordinator.logs.node_log import LogUpkeep
from coordinator.partitions.leadership import Leadership
from coordinator.runtime.periodic_jobs import Scheduler
from coordinator.telemetry.logs import dropped_line_count
from coordinator.telemetry.stats import Histogram
from coordinator.version import __version__, is_compiled
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.placement import find_swapped_directories

COUNTERS: Final[tuple[tuple[CounterHelp, str], ...]] = (
    (request_metrics.UNSUPPORTED_REQUESTS, "unsupported_requests"),
    (request_metrics.MALFORMED_REQUESTS, "malformed_requests"),
    (request_metrics.OVERSIZED_REQUESTS, "oversized_requests"),
    (request_metrics.OVERSIZED_ANSWERS, "oversized_answers"),
    (request_metrics.RECEIVED_BYTES, "bytes_received"),
    (request_metrics.SENT_BYTES, "bytes_sent"),
    (request_metrics.CONNECTIONS_ACCEPTED, "connections_accepted"),
    (request_metrics.CONNECTIONS_REFUSED, "connections_refused"),
    (request_metrics.CONNECTIONS_IDLE_CLOSED, "connections_idle_closed"),
    (request_metrics.CONNECTIONS_UNREAD_CLOSED, "connections_unread_closed"),
    (offset_metrics.OFFSET_COMMITS, "offset_commits"),
    (offset_metrics.OFFSET_FETCHES, "offset_fetches"),
    (offset_metrics.LOG_FETCHES, "log_fetches"),
    (offset_metrics.LOG_FETCHED_BYTES, "log_fetched_bytes"),
    (offset_metrics.OFFSET_DELETIONS, "offset_deletions"),
    (offset_metrics.OFFSET_EXPIRATIONS, "offset_expirations"),
    (group_metrics.GROUP_EXPIRATIONS, "groups_expired"),
    (offset_metrics.WALL_CLOCK_JUMPS, "wall_clock_jumps"),
    (log_metrics.FLUSH_FAILURES, "flush_failures"),
    (node_metrics.PARTITIONS_GAINED, "partitions_gained"),
    (node_metrics.PARTITIONS_LOST, "partitions_lost"),
    (node_metrics.WORKER_RESTARTS, "worker_restarts"),
    (node_metrics.LOOP_STALLS, "loop_stalls"),
    (log_metrics.PARTITION_LOADS, "partition_loads"),
    (log_metrics.PARTITION_LOAD_FAILURES, "partition_load_failures"),
    (log_metrics.LOADED_RECORDS, "records_loaded"),
    (log_metrics.LOG_CLEANINGS, "cleanings"),
    (log_metrics.LOG_CLEANING_FAILURES, "cleaning_failures"),
    (log_metrics.LOG_CLEANING_FREED, "cleaned_bytes_freed"),
    (log_metrics.UNKNOWN_RECORDS, "unknown_records"),
    (log_metrics.OPEN_TRANSACTIONS, "open_transactions"),
)
"""The attribute of `Stats` that each counter shows."""


class NodeCollector(Collector):
    """Turns a node's counters and state into metrics at the moment of the scrape."""

    def __init__(
        self,
        leadership: Leadership,
        upkeep: LogUpkeep | None,
        scheduler: Scheduler,
        limits: LimitWatch,
        connections: Callable[[], int],
        groups_top: int,
    ) -> None:
        """Show what these count; `connections` returns the number of open ones, `groups_top` is a setting."""
        self.stats = leadership.stats
        self.manager = leadership.manager
        self.connections = connections
        self.loads = leadership.loader.progress
        self.group_counts = GroupCounts()
        self._upkeep = upkeep
        self._failed_partitions = leadership.failed_partitions
        self._jobs = scheduler.jobs
        self._limits = limits
        self._groups_top = groups_top

    async def update_group_counts(self) -> None:
        """Count the groups again; `collect` shows these counts until the next call."""
        self.group_counts = await count_groups(self.manager, self._groups_top)

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the node."""
        yield from self._counters()
        yield from self._labelled_counters()
        yield from self._gauges()
        yield from self._job_metrics()
        yield from self._limit_metrics()
        yield from self._disk_metrics()
        yield from self._upstream_metrics()
        yield _build_info()
        yield _flushes(self.stats.flushes)

    def _counters(self) -> Iterator[Metric]:
        yield node_metrics.LOG_LINES_DROPPED.make_family(dropped_line_count())
        for counter, attribute in COUNTERS:
            yield counter.make_family(getattr(self.stats, attribute))

    def _limit_metrics(self) -> Iterator[Metric]:
        used = request_metrics.LIMIT_USED.make_family()
        maximum = request_metrics.LIMIT_MAX.make_family()
        refusals = request_metrics.LIMIT_REFUSALS.make_family()
        for limit in self._limits.limits:
            if limit.used is not None:
                used.add_metric([limit.name], limit.used())
            maximum.add_metric([limit.name], limit.maximum)
            refusals.add_metric([limit.name], self._limits.refusals.get(limit.name, 0))
        yield from (used, maximum, refusals)

    def _disk_metrics(self) -> Iterator[Metric]:
        if self._upkeep is None:
            return
        yield log_metrics.JOURNAL_BYTES.make_family(self._upkeep.journal_bytes)
        space = self._upkeep.space
        if space is not None:
            yield log_metrics.DISK_FREE.make_family(space.free)
            yield log_metrics.DISK_SIZE.make_family(space.size)

    def _upstream_metrics(self) -> Iterator[Metric]:
        """Yield whether the Kafka cluster and each of its brokers respond; the broker count bounds the label."""
        if self.stats.upstream_up is not None:
            yield node_metrics.UPSTREAM_UP.make_family(self.stats.upstream_up)
        if self.stats.upstream_brokers:
            up = node_metrics.UPSTREAM_BROKER_UP.make_family()
            for broker, answers in self.stats.upstream_brokers.items():
                up.add_metric([str(broker)], answers)
            yield up

    def _job_metrics(self) -> Iterator[Metric]:
        runs, failures = node_metrics.JOB_RUNS.make_family(), node_metrics.JOB_FAILURES.make_family()
        last, failing = (
            node_metrics.JOB_LAST_DURATION.make_family(),
            node_metrics.JOB_FAILING_SINCE.make_family(),
        )
        for job in self._jobs.values():
            failing.add_metric([job.name], job.failing_since_ms / 1e3)
            runs.add_metric([job.name], job.runs)
            failures.add_metric([job.name], job.failures)
            last.add_metric([job.name], job.last_ms / 1e3)
        yield from (runs, failures, last, failing)

    def _labelled_counters(self) -> Iterator[Metric]:
        handled = request_metrics.REQUESTS.make_family()
        durations = request_metrics.REQUEST_DURATION.make_family()
        for key, api in self.stats.apis.items():
            if api.handled:
                name = [ApiKey(key).name.lower()]
                handled.add_metric(name, api.handled)
                _add_histogram(durations, name, api.durations)
        yield from (handled, durations)
        errors = request_metrics.REQUEST_ERRORS.make_family()
        for (key, code), count in self.stats.errors.items():
            errors.add_metric([ApiKey(key).name.lower(), ErrorCode(code).name.lower()], count)
        yield errors
        rebalances = group_metrics.REBALANCES.make_family()
        for cause in RebalanceCause:
            rebalances.add_metric([cause.value], self.stats.rebalances[cause])
        yield rebalances
        yield from self._rebalance_durations()
        if self._groups_top:
            yield from self._group_metrics()

    def _group_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of the few busiest groups, which `metrics.groups.top` asks for."""
        for counter, top in (
            (group_metrics.GROUP_OFFSET_COMMITS, self.group_counts.commits),
            (group_metrics.GROUP_REBALANCES, self.group_counts.rebalances),
        ):
            family = counter.make_family()
            for count, group_id in top:
                family.add_metric([group_id], count)
            yield family

    def _rebalance_durations(self) -> Iterator[Metric]:
        durations = group_metrics.REBALANCE_DURATION.make_family()
        waits = group_metrics.REBALANCE_SLOWEST_MEMBER.make_family()
        for cause, histogram in self.stats.rebalance_durations.items():
            _add_histogram(durations, [cause.value], histogram)
            waits.add_metric([cause.value, "join"], self.stats.slowest_join_ms[cause] / 1e3)
            waits.add_metric([cause.value, "assignment"], self.stats.assignment_ms[cause] / 1e3)
        yield from (durations, waits)

    def _gauges(self) -> Iterator[Metric]:
        by_state = group_metrics.GROUPS.make_family()
        for state in self.manager.kinds.state_names:
            by_state.add_metric([state], self.group_counts.states[state])
        yield by_state
        partitions = log_metrics.PARTITIONS.make_family()
        for name, count in self.partition_counts_by_state.items():
            partitions.add_metric([name], count)
        yield partitions
        for gauge, value in GAUGES:
            yield gauge.make_family(value(self))

    @property
    def partition_counts_by_state(self) -> Mapping[str, int]:
        """The number of partitions that this node leads, by state."""
        manager = self.manager
        waiting = len(manager.waiting_partitions)
        return {
            "owned": len(manager.owned_partitions),
            "loading": len(manager.loading_partitions) - waiting,
            "waiting": waiting,
            "failed": len(self._failed_partitions),
        }

    @property
    def unwritable_partition_count(self) -> int:
        """The number of partitions that this node leads and that accept no commits now."""
        states = self.partition_counts_by_state
        refused = states["owned"] if self.stats.log_refusing_since_ms else 0
        return refused + states["loading"] + states["waiting"] + states["failed"]


GAUGES: Final[tuple[tuple[GaugeHelp, Callable[[NodeCollector], float]], ...]] = (
    (offset_metrics.OFFSETS, lambda it: it.manager.env.usage.offsets),
    (group_metrics.MEMBERS, lambda it: it.manager.env.usage.members),
    (request_metrics.CONNECTIONS, lambda it: it.connections()),
    (
        group_metrics.GROUPS_REBALANCING_OFTEN,
        lambda it: it.manager.frequent_rebalances.count_groups(it.manager.clock.mono_ms()),
    ),
    (log_metrics.PARTITIONS_UNWRITABLE, lambda it: it.unwritable_partition_count),
    (
        log_metrics.PARTITIONS_IN_WRONG_PLACE,
        lambda it: len(find_swapped_directories(it.manager.misplaced_placements)),
    ),
    (
        log_metrics.MISPLACED_GROUPS,
        lambda it: sum(each.misplaced_group_count for each in it.manager.misplaced_placements),
    ),
    (log_metrics.LOG_REFUSING, lambda it: it.stats.log_refusing_since_ms / 1e3),
    (log_metrics.LAST_FLUSH, lambda it: it.stats.last_flush_ms / 1e3),
    (log_metrics.LOADING_BYTES, lambda it: sum(load.bytes_read for load in it.loads.values())),
    (log_metrics.LOADING_SIZE, lambda it: sum(load.size_bytes for load in it.loads.values())),
    (log_metrics.PARTITION_LOAD_MAX, lambda it: it.stats.partition_load_ms_max / 1e3),
    (log_metrics.LOG_DIRTY_RATIO_MAX, lambda it: it.stats.dirty_ratio_max),
    (log_metrics.LOG_UNCLEANABLE, lambda it: it.stats.uncleanable_partitions),
    (log_metrics.LOG_CLEANER_LAST_RUN, lambda it: it.stats.cleaner_last_run_ms / 1e3),
    (log_metrics.LOG_LAST_CLEANED, lambda it: it.stats.last_cleaned_ms / 1e3),
    (node_metrics.LOOP_PAUSE_MAX, lambda it: it.stats.loop_pause_ms_max / 1e3),
    (node_metrics.RECENT_LOOP_PAUSE_MAX, lambda it: it.stats.recent_loop_pause_ms_max / 1e3),
)


def _build_info() -> Metric:
    info = node_metrics.BUILD_INFO.make_family()
    info.add_metric([__version__, str(is_compiled()).lower(), platform.python_version()], 1)
    return info


def _flushes(histogram: Histogram) -> Metric:
    family = log_metrics.FLUSH_DURATION.make_family()
    _add_histogram(family, [], histogram)
    return family


def _add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.sum_ns / 1e9)
