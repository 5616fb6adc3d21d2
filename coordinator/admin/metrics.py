# SPDX-License-Identifier: Apache-2.0
"""What Prometheus sees: every metric of a node, in base units, made from `Stats` when it is asked for.

No label holds a group, a member or a topic, since what clients name is not bounded; but for the few groups that
`metrics.groups.top` asks for, and, in front of a cluster, for the lag (`lag_metrics.py`), whose rows are bounded.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator.groups.classic.state import GroupState
from coordinator.groups.progress import RebalanceCause
from coordinator.jobs.group_counts import GroupCounts, count_groups
from coordinator.jobs.limit_watch import LimitWatch
from coordinator.partitions.loader import LoadProgress
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.scheduler import Job
from coordinator.telemetry.logs import dropped_lines
from coordinator.telemetry.stats import Histogram, Stats
from coordinator.version import __version__, is_compiled
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.names import Partition
from storage.disk.filesystem import Space
from storage.log_manager import LogManager

PREFIX: Final = "groupkeeper_"

COUNTERS: Final = (
    (
        "unsupported_requests",
        "unsupported_requests",
        "Requests of an unknown api or version; each closed its connection.",
    ),
    (
        "malformed_requests",
        "malformed_requests",
        "Requests that could not be read; each closed its connection.",
    ),
    (
        "oversized_requests",
        "oversized_requests",
        "Requests longer, or with more items, than their api allows; each closed its connection.",
    ),
    ("oversized_answers", "oversized_answers", "Answers that were not given because they would be too long."),
    ("received_bytes", "bytes_received", "Bytes read from Kafka clients."),
    ("sent_bytes", "bytes_sent", "Bytes written to Kafka clients."),
    ("connections_accepted", "connections_accepted", "Connections accepted."),
    ("connections_refused", "connections_refused", "Connections refused by a limit."),
    ("connections_idle_closed", "connections_idle_closed", "Connections closed because they asked nothing."),
    (
        "connections_unread_closed",
        "connections_unread_closed",
        "Connections closed because their peers did not read their answers.",
    ),
    ("offset_commits", "offset_commits", "Offsets committed, counted by partition."),
    ("offset_fetches", "offset_fetches", "Groups whose offsets were fetched."),
    ("log_fetches", "log_fetches", "Fetches of the offsets topic."),
    (
        "log_fetched_bytes",
        "log_fetched_bytes",
        "Bytes of records in answers to fetches of the offsets topic.",
    ),
    ("offset_deletions", "offset_deletions", "Offsets deleted on request or with their group or topic."),
    ("offset_expirations", "offset_expirations", "Offsets removed because they had expired."),
    ("group_expirations", "groups_expired", "Groups removed because nothing was left of them."),
    ("wall_clock_jumps", "wall_clock_jumps", "Checks for expired offsets put off because the clock jumped."),
    ("flush_failures", "flush_failures", "Flushes of the log that failed."),
    ("partitions_gained", "partitions_gained", "Partitions that the supervisor let this node lead."),
    ("partitions_lost", "partitions_lost", "Partitions that the supervisor took from this node."),
    ("worker_restarts", "worker_restarts", "How often this node has died and was started again."),
    ("loop_stalls", "loop_stalls", "How often a worker's event loop was held for worker.timeout.ms."),
    ("partition_loads", "partition_loads", "Partitions loaded."),
    ("partition_load_failures", "partition_load_failures", "Partitions that could not be loaded."),
    ("loaded_records", "records_loaded", "Records applied while loading."),
    ("log_cleanings", "cleanings", "Compactions of a partition's log."),
    ("log_cleaning_failures", "cleaning_failures", "Compactions that failed; the log stayed as it was."),
    ("log_cleaning_freed_bytes", "cleaned_bytes_freed", "Bytes that logs became shorter by when compacted."),
    ("unknown_records", "unknown_records", "Records of a kind that is not served, skipped while loading."),
    (
        "open_transactions",
        "open_transactions",
        "Transactions without an end in a log, whose offsets were left out while loading.",
    ),
)


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
    ) -> None:
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

    async def count_groups(self) -> None:
        """Count the groups, for what is collected from now on."""
        self.group_counts = await count_groups(self.manager, self._groups_top)

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        yield from self._counters()
        yield from self._labelled_counters()
        yield from self._gauges()
        yield from self._job_metrics()
        yield from self._limit_metrics()
        yield from self._disk_metrics()
        yield from self._upstream_metrics()
        yield _build_info()
        yield _histogram(
            "flush_duration_seconds", "Time from the start of a flush to its end.", self.stats.flushes
        )

    def _counters(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            PREFIX + "log_lines_dropped",
            "Lines of the node's own log that were dropped because nobody read those before.",
            value=dropped_lines(),
        )
        for name, attribute, text in COUNTERS:
            yield CounterMetricFamily(PREFIX + name, text, value=getattr(self.stats, attribute))

    def _limit_metrics(self) -> Iterator[Metric]:
        used = GaugeMetricFamily(
            PREFIX + "limit_used", "What there is of something limited.", labels=["limit"]
        )
        maximum = GaugeMetricFamily(PREFIX + "limit_max", "How much there may be of it.", labels=["limit"])
        refusals = CounterMetricFamily(
            PREFIX + "limit_refusals", "Requests, or parts of them, that a limit refused.", labels=["limit"]
        )
        for limit in self._limits.limits:
            if limit.used is not None:
                used.add_metric([limit.name], limit.used())
            maximum.add_metric([limit.name], limit.maximum)
            refusals.add_metric([limit.name], self._limits.refusals.get(limit.name, 0))
        yield from (used, maximum, refusals)

    def _disk_metrics(self) -> Iterator[Metric]:
        space = self._space()
        if space is not None:
            yield GaugeMetricFamily(
                PREFIX + "disk_free_bytes",
                "Bytes that the node may still take of the data directory's disk.",
                value=space.free,
            )
            yield GaugeMetricFamily(PREFIX + "disk_size_bytes", "How large that disk is.", value=space.size)

    def _upstream_metrics(self) -> Iterator[Metric]:
        """In front of a Kafka cluster: which of its brokers answer; how many there are bounds the label."""
        if self.stats.upstream_brokers:
            up = GaugeMetricFamily(
                PREFIX + "upstream_broker_up",
                "Whether a broker of the cluster answers the gateway.",
                labels=["broker"],
            )
            for broker, answers in self.stats.upstream_brokers.items():
                up.add_metric([str(broker)], answers)
            yield up

    def _job_metrics(self) -> Iterator[Metric]:
        runs = CounterMetricFamily(PREFIX + "job_runs", "Runs of a periodic job.", labels=["job"])
        failures = CounterMetricFamily(PREFIX + "job_failures", "Runs that failed.", labels=["job"])
        last = GaugeMetricFamily(
            PREFIX + "job_last_duration_seconds", "How long the newest run took.", labels=["job"]
        )
        failing = GaugeMetricFamily(
            PREFIX + "job_failing_since_timestamp_seconds",
            "Since when every run of the job has failed; 0 where the newest did not.",
            labels=["job"],
        )
        for job in self._jobs.values():
            failing.add_metric([job.name], job.failing_since_ms / 1e3)
            runs.add_metric([job.name], job.runs)
            failures.add_metric([job.name], job.failures)
            last.add_metric([job.name], job.last_ms / 1e3)
        yield from (runs, failures, last, failing)

    def _labelled_counters(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(PREFIX + "requests", "Requests handled, by api.", labels=["api"])
        durations = HistogramMetricFamily(
            PREFIX + "request_duration_seconds",
            "Time from when a request is begun with until its answer is handed to the socket.",
            labels=["api"],
        )
        for key, api in self.stats.apis.items():
            if api.handled:
                name = [ApiKey(key).name.lower()]
                requests.add_metric(name, api.handled)
                _add_histogram(durations, name, api.durations)
        yield from (requests, durations)
        errors = CounterMetricFamily(
            PREFIX + "request_errors",
            "Errors in answers, by api and error; one answer may have several.",
            labels=["api", "error"],
        )
        for (key, code), count in self.stats.errors.items():
            errors.add_metric([ApiKey(key).name.lower(), ErrorCode(code).name.lower()], count)
        yield errors
        rebalances = CounterMetricFamily(
            PREFIX + "rebalances", "Rebalances begun, by cause.", labels=["cause"]
        )
        for cause in RebalanceCause:
            rebalances.add_metric([cause.value], self.stats.rebalances[cause])
        yield rebalances
        yield from self._rebalance_durations()
        if self._groups_top:
            yield from self._group_metrics()

    def _group_metrics(self) -> Iterator[Metric]:
        """The few groups that do most: an operator has asked for them."""
        commits = CounterMetricFamily(
            PREFIX + "group_offset_commits",
            "Offsets committed by the groups that commit most, since they are in memory.",
            labels=["group"],
        )
        rebalances = CounterMetricFamily(
            PREFIX + "group_rebalances",
            "Rebalances of the groups that rebalance most, since they are in memory.",
            labels=["group"],
        )
        for family, top in (
            (commits, self.group_counts.commits),
            (rebalances, self.group_counts.rebalances),
        ):
            for count, group_id in top:
                family.add_metric([group_id], count)
            yield family

    def _rebalance_durations(self) -> Iterator[Metric]:
        durations = HistogramMetricFamily(
            PREFIX + "rebalance_duration_seconds",
            "Time from the begin of a rebalance to the assignment that ends it, by its first cause.",
            labels=["cause"],
        )
        waits = CounterMetricFamily(
            PREFIX + "rebalance_slowest_member_seconds",
            "Of these times the part in which all members but one had done what they had to.",
            labels=["cause", "phase"],
        )
        for cause, histogram in self.stats.rebalance_durations.items():
            _add_histogram(durations, [cause.value], histogram)
            waits.add_metric([cause.value, "join"], self.stats.slowest_join_ms[cause] / 1e3)
            waits.add_metric([cause.value, "assignment"], self.stats.assignment_ms[cause] / 1e3)
        yield from (durations, waits)

    def _gauges(self) -> Iterator[Metric]:
        groups = GaugeMetricFamily(PREFIX + "groups", "Groups in memory, by state.", labels=["state"])
        for state in GroupState:
            groups.add_metric([state.value], self.group_counts.states[state])
        yield groups
        partitions = GaugeMetricFamily(PREFIX + "partitions", "Partitions by state.", labels=["state"])
        for name, count in self.partitions.items():
            partitions.add_metric([name], count)
        yield partitions
        for name, text, value in GAUGES:
            yield GaugeMetricFamily(PREFIX + name, text, value=value(self))

    @property
    def partitions(self) -> Mapping[str, int]:
        """How many partitions that this node leads are in which state."""
        manager = self.manager
        waiting = len(manager.waiting_partitions)
        return {
            "owned": len(manager.owned_partitions),
            "loading": len(manager.loading_partitions) - waiting,
            "waiting": waiting,
            "failed": self._failed_partitions(),
        }

    @property
    def partitions_unwritable(self) -> int:
        """To how many of them nothing can be committed now."""
        states = self.partitions
        refused = states["owned"] if self.stats.log_refusing_since_ms else 0
        return refused + states["loading"] + states["waiting"] + states["failed"]


GAUGES: Final[tuple[tuple[str, str, Callable[[NodeCollector], float]], ...]] = (
    ("offsets", "Committed offsets in memory.", lambda node: node.manager.env.usage.offsets),
    ("members", "Members of all groups.", lambda node: node.manager.env.usage.members),
    ("connections", "Open connections.", lambda node: node.connections()),
    ("journal_bytes", "Bytes in the journal since the last checkpoint.", lambda node: node.log.journal_bytes),
    (
        "partitions_unwritable",
        "Partitions that this node leads and to which nothing can be committed now.",
        lambda node: node.partitions_unwritable,
    ),
    (
        "log_refusing_since_timestamp_seconds",
        "Since when the log refuses all appends, because a write has failed; 0 while it takes them.",
        lambda node: node.stats.log_refusing_since_ms / 1e3,
    ),
    (
        "last_flush_timestamp_seconds",
        "When the newest flush of the log began that succeeded; 0 if there was none since the start.",
        lambda node: node.stats.last_flush_ms / 1e3,
    ),
    (
        "loading_bytes",
        "Bytes read so far of the partitions that are loading.",
        lambda node: sum(load.bytes_read for load in node.loads.values()),
    ),
    (
        "loading_size_bytes",
        "How long the logs of the partitions that are loading are.",
        lambda node: sum(load.size_bytes for load in node.loads.values()),
    ),
    (
        "partition_load_seconds_max",
        "The longest load of a partition.",
        lambda node: node.stats.partition_load_ms_max / 1e3,
    ),
    (
        "log_dirty_ratio_max",
        "Of the dirtiest log the share that was not compacted yet.",
        lambda node: node.stats.dirty_ratio_max,
    ),
    (
        "log_uncleanable_partitions",
        "Partitions whose log cannot be compacted.",
        lambda node: node.stats.uncleanable_partitions,
    ),
    (
        "log_cleaner_last_run_timestamp_seconds",
        "Time of the cleaner's last check for a log to compact.",
        lambda node: node.stats.cleaner_last_run_ms / 1e3,
    ),
    (
        "log_last_cleaned_timestamp_seconds",
        "When a log was last compacted; 0 if not since the start.",
        lambda node: node.stats.last_cleaned_ms / 1e3,
    ),
    (
        "loop_pause_seconds_max",
        "The longest pause of the event loop since the start.",
        lambda node: node.stats.loop_pause_ms_max / 1e3,
    ),
    (
        "recent_loop_pause_seconds_max",
        "The longest pause of the event loop in this minute and the one before.",
        lambda node: node.stats.recent_loop_pause_ms_max / 1e3,
    ),
)


def _build_info() -> Metric:
    built = {
        "version": __version__,
        "compiled": str(is_compiled()).lower(),
        "python": platform.python_version(),
    }
    info = GaugeMetricFamily(PREFIX + "build_info", "What this node runs; always 1.", labels=list(built))
    info.add_metric(list(built.values()), 1)
    return info


def _add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, histogram.cumulative(), histogram.sum_ns / 1e9)


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text)
    _add_histogram(family, [], histogram)
    return family
