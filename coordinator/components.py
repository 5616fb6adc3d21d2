# SPDX-License-Identifier: Apache-2.0
"""The only place where the components of a node are created and connected; `app` starts and stops them."""

import asyncio

from coordinator.admin.readiness import Readiness
from coordinator.api.context import deliver
from coordinator.catalogue.limits import Totals
from coordinator.config import Settings
from coordinator.data_directory import open_log
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.group_totals import GroupTotals
from coordinator.host_resources import HostResources
from coordinator.jobs.cleaner_task import CleanerTask, cleaner_settings
from coordinator.jobs.disk_jobs import DiskJobs
from coordinator.jobs.limit_table import list_limits
from coordinator.jobs.limit_watch import LimitWatch
from coordinator.jobs.loop_watch import LoopWatch
from coordinator.jobs.wall_clock import WallClockGuard
from coordinator.net.fair_queue import FairQueue
from coordinator.net.input_barrier import InputBarrier
from coordinator.net.response_budget import ResponseBudget
from coordinator.partitions.client_log_reads import LogReads
from coordinator.partitions.committer import Committer, FlushMode
from coordinator.partitions.file_log import FileLog
from coordinator.partitions.group_access import GroupAccess
from coordinator.partitions.group_settings import group_config
from coordinator.partitions.leadership import Leadership
from coordinator.partitions.loader import Loader
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.member_ids import MemberIdSuffixes
from coordinator.runtime.periodic_jobs import Scheduler
from coordinator.runtime.timers import Timers
from coordinator.telemetry.stats import Stats
from storage.cleaner.log_cleaner import LogCleaner
from storage.format.compression import NAMES as COMPRESSIONS
from storage.log_manager import LogManager


class NodeComponents:
    """The components of a node; it is a single node unless a supervisor passes `log_manager` and `cluster_id`."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        log_manager: LogManager | None = None,
        cluster_id: str = "",
    ) -> None:
        self.settings = settings
        self.loop = loop
        self.machine = machine
        if log_manager is None:
            log_manager, meta = open_log(settings, machine)
            cluster_id = meta.cluster_id
        self.log = log_manager
        self.cluster_id = cluster_id
        self.clock = machine.clock
        self.stats = Stats()
        self.usage = GroupTotals(self.stats.limit_refusals)
        self.timers = Timers(loop, self.clock)
        self.scheduler = Scheduler(self.timers, self.clock)
        self._make_watches()
        # A flush must not wait behind a checkpoint's syncs, so each has a thread of its own.
        self.io = machine.thread(loop, "groupkeeper-io")
        self.flush_thread = machine.thread(loop, "groupkeeper-flush")
        self.committer = self._make_committer()
        self.group_log = FileLog(
            self.log, self.committer, self.io, self.clock, self.stats, settings.offsets_load_buffer_size
        )
        self._make_groups()
        self._make_jobs()
        self.reads = LogReads(self.log, self.io, self.timers, self.budget)

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

    def _make_committer(self) -> Committer:
        settings = self.settings
        return Committer(
            self.loop,
            self.log,
            self.flush_thread,
            self.clock,
            self.stats,
            FlushMode(settings.log_flush),
            batch_bytes_max=settings.message_max_bytes,
            offset_value_version=settings.offsets_value_version,
            compression=COMPRESSIONS.index(settings.offsets_topic_compression_codec),
        )

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
        self.leadership = Leadership(self.manager, self.loader, self.group_log, self.stats)
        self._readiness = Readiness(
            self.manager, self.leadership, self.loader, self.scheduler, self.log, self.stats, self.clock
        )

    def _make_jobs(self) -> None:
        """Create the jobs that work on the log in addition to requests."""
        settings, repair = self.settings, self.group_log.start_repair
        self.disk_jobs = DiskJobs(self.log, self.io, self.clock, settings.journal_checkpoint_bytes, repair)
        self.cleaner = CleanerTask(
            LogCleaner(self.log, cleaner_settings(settings), self.machine.compact, self.clock.wall_ms),
            self.machine.thread(self.loop, "groupkeeper-cleaner"),
            self.log,
            self.clock,
            self.stats,
            repair,
        )
