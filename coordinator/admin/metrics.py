# SPDX-License-Identifier: Apache-2.0
"""The metrics of a node for Prometheus, in base units, made from `Stats` at each scrape.

Names, labels and sentences come from `reference`, from which docs/metrics.md is made, too.

No label holds a group, a member or a topic, because clients choose their names without a bound. The exceptions are
bounded: the few groups of `metrics.groups.top` and, in front of a cluster, the lag (`lag_metrics.py`).
"""

import platform
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.admin.reference import gateway, groups, log, node, offsets, requests
from coordinator.admin.reference.metric_help import CounterHelp, GaugeHelp
from coordinator.groups.classic.state import GroupState
from coordinator.groups.progress import RebalanceCause
from coordinator.jobs.declared_ends import DeclaredEnds
from coordinator.jobs.group_counts import GroupCounts, count_groups
from coordinator.jobs.limit_watch import LimitWatch
from coordinator.partitions.loader import LoadProgress
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.scheduler import Job
from coordinator.telemetry.logs import dropped_line_count
from coordinator.telemetry.stats import Histogram, Stats
from coordinator.version import __version__, is_compiled
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.named_types import Partition
from protocol.placement import find_swapped_directories
from storage.disk.filesystem import Space
from storage.log_manager import LogManager

COUNTERS: Final[tuple[tuple[CounterHelp, str], ...]] = (
    (requests.UNSUPPORTED_REQUESTS, "unsupported_requests"),
    (requests.MALFORMED_REQUESTS, "malformed_requests"),
    (requests.OVERSIZED_REQUESTS, "oversized_requests"),
    (requests.OVERSIZED_ANSWERS, "oversized_answers"),
    (requests.RECEIVED_BYTES, "bytes_received"),
    (requests.SENT_BYTES, "bytes_sent"),
    (requests.CONNECTIONS_ACCEPTED, "connections_accepted"),
    (requests.CONNECTIONS_REFUSED, "connections_refused"),
    (requests.CONNECTIONS_IDLE_CLOSED, "connections_idle_closed"),
    (requests.CONNECTIONS_UNREAD_CLOSED, "connections_unread_closed"),
    (offsets.OFFSET_COMMITS, "offset_commits"),
    (offsets.OFFSET_FETCHES, "offset_fetches"),
    (offsets.LOG_FETCHES, "log_fetches"),
    (offsets.LOG_FETCHED_BYTES, "log_fetched_bytes"),
    (offsets.OFFSET_DELETIONS, "offset_deletions"),
    (offsets.OFFSET_EXPIRATIONS, "offset_expirations"),
    (groups.GROUP_EXPIRATIONS, "groups_expired"),
    (offsets.WALL_CLOCK_JUMPS, "wall_clock_jumps"),
    (log.FLUSH_FAILURES, "flush_failures"),
    (node.PARTITIONS_GAINED, "partitions_gained"),
    (node.PARTITIONS_LOST, "partitions_lost"),
    (node.WORKER_RESTARTS, "worker_restarts"),
    (node.LOOP_STALLS, "loop_stalls"),
    (log.PARTITION_LOADS, "partition_loads"),
    (log.PARTITION_LOAD_FAILURES, "partition_load_failures"),
    (log.LOADED_RECORDS, "records_loaded"),
    (log.LOG_CLEANINGS, "cleanings"),
    (log.LOG_CLEANING_FAILURES, "cleaning_failures"),
    (log.LOG_CLEANING_FREED, "cleaned_bytes_freed"),
    (log.UNKNOWN_RECORDS, "unknown_records"),
    (log.OPEN_TRANSACTIONS, "open_transactions"),
)
"""The attribute of `Stats` that each counter shows."""


class NodeCollector(Collector):
    """Turns a node's counters and state into metrics at the moment of the scrape."""

    def __init__(
        self,
        stats: Stats,
        manager: GroupMetadataManager,
        log_manager: LogManager,
        connections: Callable[[], int],
        failed_partitions: Callable[[], int],
        loads: Mapping[Partition, LoadProgress],
        jobs: Mapping[str, Job],
        limits: LimitWatch,
        space: Callable[[], Space | None],
        groups_top: int,
        ends: Callable[[], Awaitable[DeclaredEnds]] | None,
    ) -> None:
        """Create a collector; `ends` finds the ends of partitions, or is None if other metrics show the lag."""
        self.stats = stats
        self.manager = manager
        self.log = log_manager
        self.connections = connections
        self.loads = loads
        self.group_counts = GroupCounts()
        self._failed_partitions = failed_partitions
        self._jobs = jobs
        self._limits = limits
        self._space = space
        self._groups_top = groups_top
        self._ends = ends

    async def count_groups(self) -> None:
        """Count the groups for all collections from now on."""
        ends = await self._ends() if self._ends is not None and self._groups_top else None
        self.group_counts = await count_groups(self.manager, self._groups_top, ends)

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
        yield node.LOG_LINES_DROPPED.make_family(dropped_line_count())
        for counter, attribute in COUNTERS:
            yield counter.make_family(getattr(self.stats, attribute))

    def _limit_metrics(self) -> Iterator[Metric]:
        used = requests.LIMIT_USED.make_family()
        maximum = requests.LIMIT_MAX.make_family()
        refusals = requests.LIMIT_REFUSALS.make_family()
        for limit in self._limits.limits:
            if limit.used is not None:
                used.add_metric([limit.name], limit.used())
            maximum.add_metric([limit.name], limit.maximum)
            refusals.add_metric([limit.name], self._limits.refusals.get(limit.name, 0))
        yield from (used, maximum, refusals)

    def _disk_metrics(self) -> Iterator[Metric]:
        space = self._space()
        if space is not None:
            yield log.DISK_FREE.make_family(space.free)
            yield log.DISK_SIZE.make_family(space.size)

    def _upstream_metrics(self) -> Iterator[Metric]:
        """Yield whether the Kafka cluster and each of its brokers respond; the broker count bounds the label."""
        if self.stats.upstream_up is not None:
            yield node.UPSTREAM_UP.make_family(self.stats.upstream_up)
        if self.stats.upstream_brokers:
            up = node.UPSTREAM_BROKER_UP.make_family()
            for broker, answers in self.stats.upstream_brokers.items():
                up.add_metric([str(broker)], answers)
            yield up

    def _job_metrics(self) -> Iterator[Metric]:
        runs, failures = node.JOB_RUNS.make_family(), node.JOB_FAILURES.make_family()
        last, failing = node.JOB_LAST_DURATION.make_family(), node.JOB_FAILING_SINCE.make_family()
        for job in self._jobs.values():
            failing.add_metric([job.name], job.failing_since_ms / 1e3)
            runs.add_metric([job.name], job.runs)
            failures.add_metric([job.name], job.failures)
            last.add_metric([job.name], job.last_ms / 1e3)
        yield from (runs, failures, last, failing)

    def _labelled_counters(self) -> Iterator[Metric]:
        handled = requests.REQUESTS.make_family()
        durations = requests.REQUEST_DURATION.make_family()
        for key, api in self.stats.apis.items():
            if api.handled:
                name = [ApiKey(key).name.lower()]
                handled.add_metric(name, api.handled)
                _add_histogram(durations, name, api.durations)
        yield from (handled, durations)
        errors = requests.REQUEST_ERRORS.make_family()
        for (key, code), count in self.stats.errors.items():
            errors.add_metric([ApiKey(key).name.lower(), ErrorCode(code).name.lower()], count)
        yield errors
        rebalances = groups.REBALANCES.make_family()
        for cause in RebalanceCause:
            rebalances.add_metric([cause.value], self.stats.rebalances[cause])
        yield rebalances
        yield from self._rebalance_durations()
        if self._groups_top:
            yield from self._group_metrics()

    def _group_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of the few busiest groups, which `metrics.groups.top` asks for."""
        for counter, top in (
            (groups.GROUP_OFFSET_COMMITS, self.group_counts.commits),
            (groups.GROUP_REBALANCES, self.group_counts.rebalances),
        ):
            family = counter.make_family()
            for count, group_id in top:
                family.add_metric([group_id], count)
            yield family
        if self.group_counts.lags:
            lag = gateway.GROUP_LAG.make_family()
            for records, group_id in self.group_counts.lags:
                lag.add_metric([group_id], records)
            yield lag

    def _rebalance_durations(self) -> Iterator[Metric]:
        durations = groups.REBALANCE_DURATION.make_family()
        waits = groups.REBALANCE_SLOWEST_MEMBER.make_family()
        for cause, histogram in self.stats.rebalance_durations.items():
            _add_histogram(durations, [cause.value], histogram)
            waits.add_metric([cause.value, "join"], self.stats.slowest_join_ms[cause] / 1e3)
            waits.add_metric([cause.value, "assignment"], self.stats.assignment_ms[cause] / 1e3)
        yield from (durations, waits)

    def _gauges(self) -> Iterator[Metric]:
        by_state = groups.GROUPS.make_family()
        for state in GroupState:
            by_state.add_metric([state.value], self.group_counts.states[state])
        yield by_state
        partitions = log.PARTITIONS.make_family()
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
            "failed": self._failed_partitions(),
        }

    @property
    def unwritable_partition_count(self) -> int:
        """The number of partitions that this node leads and that accept no commits now."""
        states = self.partition_counts_by_state
        refused = states["owned"] if self.stats.log_refusing_since_ms else 0
        return refused + states["loading"] + states["waiting"] + states["failed"]


GAUGES: Final[tuple[tuple[GaugeHelp, Callable[[NodeCollector], float]], ...]] = (
    (offsets.OFFSETS, lambda it: it.manager.env.usage.offsets),
    (groups.MEMBERS, lambda it: it.manager.env.usage.members),
    (requests.CONNECTIONS, lambda it: it.connections()),
    (log.JOURNAL_BYTES, lambda it: it.log.journal_bytes),
    (log.PARTITIONS_UNWRITABLE, lambda it: it.unwritable_partition_count),
    (
        log.PARTITIONS_IN_WRONG_PLACE,
        lambda it: len(find_swapped_directories(it.manager.misplaced_placements)),
    ),
    (
        log.MISPLACED_GROUPS,
        lambda it: sum(each.misplaced_group_count for each in it.manager.misplaced_placements),
    ),
    (log.LOG_REFUSING, lambda it: it.stats.log_refusing_since_ms / 1e3),
    (log.LAST_FLUSH, lambda it: it.stats.last_flush_ms / 1e3),
    (log.LOADING_BYTES, lambda it: sum(load.bytes_read for load in it.loads.values())),
    (log.LOADING_SIZE, lambda it: sum(load.size_bytes for load in it.loads.values())),
    (log.PARTITION_LOAD_MAX, lambda it: it.stats.partition_load_ms_max / 1e3),
    (log.LOG_DIRTY_RATIO_MAX, lambda it: it.stats.dirty_ratio_max),
    (log.LOG_UNCLEANABLE, lambda it: it.stats.uncleanable_partitions),
    (log.LOG_CLEANER_LAST_RUN, lambda it: it.stats.cleaner_last_run_ms / 1e3),
    (log.LOG_LAST_CLEANED, lambda it: it.stats.last_cleaned_ms / 1e3),
    (node.LOOP_PAUSE_MAX, lambda it: it.stats.loop_pause_ms_max / 1e3),
    (node.RECENT_LOOP_PAUSE_MAX, lambda it: it.stats.recent_loop_pause_ms_max / 1e3),
)


def _build_info() -> Metric:
    info = node.BUILD_INFO.make_family()
    info.add_metric([__version__, str(is_compiled()).lower(), platform.python_version()], 1)
    return info


def _flushes(histogram: Histogram) -> Metric:
    family = log.FLUSH_DURATION.make_family()
    _add_histogram(family, [], histogram)
    return family


def _add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.sum_ns / 1e9)
