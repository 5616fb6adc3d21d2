# SPDX-License-Identifier: Apache-2.0
"""The only place where the components of a node are created and connected; `app` starts and stops them."""

from functools import partial

from coordinator.admin.readiness import Readiness
from coordinator.api.context import deliver
from coordinator.catalogue.limits import Totals
from coordinator.config import Settings
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.group_totals import GroupTotals
from coordinator.jobs.committed_offsets import iterate_committed_offsets
from coordinator.jobs.limit_table import list_limits
from coordinator.jobs.limit_watch import LimitWatch
from coordinator.jobs.loop_watch import LoopWatch
from coordinator.jobs.wall_clock import WallClockGuard
from coordinator.lag.lag_book import ROWS_MAX, LagBook
from coordinator.lag.lag_trend import WINDOW_MEASUREMENTS
from coordinator.logs.node_log import NodeLog
from coordinator.net.fair_queue import FairQueue
from coordinator.net.input_barrier import InputBarrier
from coordinator.net.response_budget import ResponseBudget
from coordinator.node_runtime import NodeRuntime
from coordinator.partitions.client_log_reads import LogReads
from coordinator.partitions.group_access import GroupAccess
from coordinator.partitions.group_settings import group_config
from coordinator.partitions.leadership import Leadership
from coordinator.partitions.loader import Loader
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.member_ids import MemberIdSuffixes
from coordinator.runtime.periodic_jobs import Scheduler
from coordinator.runtime.timers import Timers


def make_lag_book(settings: Settings) -> LagBook:
    """Return a book for as many groups as the settings let /metrics name; for none, the lag is not measured."""
    window_ms = WINDOW_MEASUREMENTS * settings.metrics_lag_interval_ms
    if not settings.is_gateway:
        return LagBook("group", window_ms, settings.metrics_groups_top if settings.metrics_listen else 0)
    return LagBook(settings.metrics_lag, window_ms, 0 if settings.metrics_lag == "off" else ROWS_MAX)


class NodeComponents:
    """The components of a node, on the log that it is given."""

    def __init__(self, runtime: NodeRuntime, node_log: NodeLog) -> None:
        self.settings = runtime.settings
        self.loop = runtime.loop
        self.machine = runtime.machine
        self.clock = runtime.machine.clock
        self.stats = runtime.stats
        self.io = runtime.io
        self.log = node_log
        self.usage = GroupTotals(self.stats.limit_refusals)
        self.timers = Timers(self.loop, self.clock)
        self.scheduler = Scheduler(self.timers, self.clock)
        self._make_watches()
        self._make_groups()
        self.committed_groups = partial(iterate_committed_offsets, self.manager)
        """Yields each group that has committed offsets, with these."""
        self.lag = make_lag_book(self.settings)
        self.reads = LogReads(node_log.fetcher, self.timers, self.budget)

    def _make_watches(self) -> None:
        """Create the watches of the clocks, the event loop, the connections and the limits."""
        settings = self.settings
        self.wall_clock = WallClockGuard(self.clock, self.stats, settings.offsets_retention_check_interval_ms)
        # With timers of its own: a wait behind other work that is due at the same time is no pause.
        self.loop_watch = LoopWatch(Timers(self.loop, self.clock), self.clock, self.stats)
        self.budget = ResponseBudget(
            self.stats, settings.connections_unsent_max_bytes, settings.connections_unread_max_ms
        )
        self.fair_queue = FairQueue(self.clock.nanos)
        self.deadlines = Timers(self.loop, self.clock, InputBarrier(self.fair_queue).call_after_input)
        self.totals = Totals()
        """The totals of the catalogue's topics."""
        limits = list_limits(settings, self.usage, lambda: self.totals, lambda: self.budget.total_bytes)
        self.limits = LimitWatch(limits, self.stats.limit_refusals)

    def _make_groups(self) -> None:
        """Create the groups, and the components that load them."""
        settings = self.settings
        new_suffix = MemberIdSuffixes(self.machine.random_bytes).next
        self.manager = GroupMetadataManager(
            GroupEnvironment(group_config(settings), new_suffix, self.usage),
            self.clock,
            self.deadlines,
            self.stats,
            num_partitions=settings.offsets_topic_num_partitions,
            deliver=deliver,
            needs_marks=settings.is_gateway and settings.gateway_adopt != "off",
            batch_bytes_max=settings.message_max_bytes,
        )
        self.group_access = GroupAccess(self.manager)
        self.group_access.outside_changes.call_after = self.timers.call_after
        self.loader = Loader(self.clock, self.stats)
        self.leadership = Leadership(self.manager, self.loader, self.log.groups, self.stats)
        self.readiness = Readiness(
            self.manager,
            self.leadership,
            self.loader,
            self.scheduler,
            self.log.upkeep,
            self.stats,
            self.clock,
        )
