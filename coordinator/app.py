# SPDX-License-Identifier: Apache-2.0
"""The life of a node: starts its components, runs its periodic jobs, and stops it."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.api import private
from coordinator.api.table import Capabilities, load_declared_apis
from coordinator.catalogue.catalogue_writer import Drops
from coordinator.components import NodeComponents
from coordinator.config import Address
from coordinator.jobs.expiry_preview import preview_expiry
from coordinator.jobs.expiry_task import delete_expired_marks, delete_expired_offsets
from coordinator.jobs.lag_watch import LagWatch
from coordinator.jobs.limit_watch import INTERVAL_MS as LIMITS_INTERVAL_MS
from coordinator.logs.group_log import LogError, LogWriter
from coordinator.logs.node_log import NodeLog
from coordinator.net.connection_limits import ConnectionQuotas
from coordinator.net.listener import Listener
from coordinator.net.response_budget import CHECK_INTERVAL_MS
from coordinator.net.server import Server
from coordinator.node import Node
from coordinator.node_parts import NodeParts
from coordinator.node_runtime import NodeRuntime
from coordinator.telemetry.logs import get_logger
from coordinator.topology.view import Broker
from coordinator.version import __version__
from protocol.apis import ApiVersionRange
from protocol.newtypes import LeaderEpoch

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from coordinator.admin.admin_server import AdminServer
    from coordinator.overview.local_overview import LocalOverview
    from coordinator.overview.status import NodeStatus

log = get_logger("node")

IDLE_CHECK_INTERVAL_MS: Final = 1_000


class ServingAddresses(NamedTuple):
    """The addresses at which a started node is reached; `metrics` is a URL."""

    listen: Address
    advertised: Address
    metrics: str | None


class App(NodeComponents):
    """One node, which is started and stopped."""

    def __init__(
        self,
        runtime: NodeRuntime,
        node_log: NodeLog,
        assemble: Callable[[NodeComponents], NodeParts],
    ) -> None:
        """Create the components of a node, on the log that it is given, and its parts, which `assemble` makes."""
        super().__init__(runtime, node_log)
        self.parts = assemble(self)
        self.leadership.note_dropped = self.parts.topics.confirm_drops
        self.serving: ServingAddresses | None = None
        self.server: Server | None = None
        self.listener: Listener | None = None
        self.admin: AdminServer | None = None
        self.lag_watch = LagWatch(self.lag, self.committed_groups, self.clock, self.parts.ends.find_for_lag)

    # --- start ---

    async def start(self) -> ServingAddresses:
        """Listen, load and serve; return the addresses. Raises CannotStart if one is taken or the data cannot be used.

        The socket listens before the slower imports below: clients that come early wait in its queue.
        """
        settings = self.settings
        sock, port = self.parts.open_listening_socket()
        self.parts.lead_initial_partitions()
        host, advertised_port = settings.get_advertised_address(port)
        capabilities = self.capabilities()
        broker = Broker(settings.node_id, host, advertised_port)
        node = self._open_catalogue_and_build_node(broker, capabilities.offered_versions)
        self.server = self._server(node, capabilities)
        self.log.groups.on_failed = self._on_append_failed
        self.listener = Listener(self.loop, self.server, sock, is_private=settings.is_gateway)
        await self.listener.start_accepting()
        self.start_periodic_jobs()
        metrics = await self._start_admin()
        self.loop_watch.start()  # after the imports, the one long pause, in which no client is served yet
        log.info(
            "serving",
            kafka=f"{settings.listen.host}:{port}",
            advertised=f"{host}:{advertised_port}",
            metrics=metrics,
            data=str(settings.data_dir),
            flush=settings.log_flush,
        )
        self.serving = ServingAddresses(
            Address(settings.listen.host, port), Address(host, advertised_port), metrics
        )
        return self.serving

    def capabilities(self) -> Capabilities:
        """Return all declared apis, and those for gateways if only gateways connect to this node."""
        return Capabilities(
            load_declared_apis() + (load_declared_apis(private) if self.settings.is_gateway else [])
        )

    def _open_catalogue_and_build_node(self, broker: Broker, offers: tuple[ApiVersionRange, ...]) -> Node:
        """Open the catalogue, and return the node as the api handlers see it. Raises CannotStart."""
        store = self.parts.topics.open()
        store.later = self.loop.call_soon
        self.totals = store.catalogue.totals
        store.catalogue.refusals = self.stats.limit_refusals
        store.on_topics_deleted = self._drop_offsets_of_topics_in_steps
        return Node(
            settings=self.settings,
            node_id=self.settings.node_id,
            cluster_id=self.log.cluster_id,
            cluster=self.parts.make_cluster_view(broker),
            group_access=self.group_access,
            catalogue=store.catalogue,
            catalogue_store=store,
            timers=self.timers,
            stats=self.stats,
            new_producer_id=self.machine.new_random_producer_id,
            reads=self.reads,
            offers=offers,
            ends=self.parts.committed_offsets,
        )

    def _drop_offsets_of_topics_in_steps(self, topics: Sequence[str]) -> Drops:
        """Drop the offsets committed in deleted topics, in steps, and record durably which partitions have done so."""
        self.parts.topics.begin_drops()
        yield from self.manager.delete_offsets_of_topics(frozenset(topics))
        clean = self.manager.list_partitions_free_of_deleted_topics()
        if clean:
            yield self.parts.topics.store_finished_drops(clean)

    def _server(self, node: Node, capabilities: Capabilities) -> Server:
        settings = self.settings
        return Server(
            node,
            capabilities,
            self.stats,
            ConnectionQuotas(settings.max_connections, settings.max_connections_per_ip),
            self.budget,
            request_bytes_max=settings.socket_request_max_bytes,
            queued_bytes_max=settings.queued_max_request_bytes_per_connection,
            frame_bounds=capabilities.frame_bounds(settings.message_max_bytes),
            fair_queue=self.fair_queue,
        )

    async def _start_admin(self) -> str | None:
        """Serve /metrics and the rest, if configured; imported here because it takes as long as all before it."""
        address = self.settings.metrics_listen
        if address is None:
            return None
        from coordinator.admin.metrics import NodeCollector
        from coordinator.admin.start import start_admin

        collector = NodeCollector(
            self.leadership,
            self.log.upkeep,
            self.scheduler,
            self.limits,
            connections=lambda: len(self.server.connections) if self.server else 0,
            groups_top=self.settings.metrics_groups_top,
        )
        self.admin, url = await start_admin(
            address,
            collector,
            self._lag_collectors(),
            self.clock.nanos,
            self.parts.readiness,
            self._preview_expiry,
            self.parts.overview or self.local_overview(),
        )
        return url

    def local_overview(self) -> "LocalOverview":
        """Return the view of this node."""
        from coordinator.overview.local_group_details import LocalGroupDetails
        from coordinator.overview.local_groups import LocalGroups
        from coordinator.overview.local_overview import LocalOverview
        from coordinator.overview.local_partitions import LocalPartitions

        failed = self.leadership.failed_partitions
        node_id = self.settings.node_id
        groups = LocalGroups(node_id, self.manager, failed, self.parts.ends.find_lags)
        details = LocalGroupDetails(node_id, self.manager, groups, self.parts.ends.find)
        upkeep = self.log.upkeep
        log_size = upkeep.find_log_size if upkeep is not None else lambda _partition: None
        partitions = LocalPartitions(node_id, self.manager, failed, self.leadership.epochs, log_size)
        return LocalOverview(groups, details, partitions, self._status)

    def _status(self) -> "NodeStatus":
        from coordinator.overview.status import make_node_status

        groups = sum(len(shard.groups) for shard in self.manager.owned_partitions.values())
        upkeep = self.log.upkeep
        return make_node_status(
            self.settings.node_id,
            __version__,
            self.log.cluster_id,
            self.parts.readiness(),
            groups,
            None if upkeep is None else upkeep.space,
            0 if upkeep is None else upkeep.journal_bytes,
            self.stats.last_flush_ms or None,
        )

    def _lag_collectors(self) -> "list[Collector]":
        """Return the collector of the lag of groups, if it is measured."""
        if not self.lag.rows_max:
            return []
        from coordinator.admin.lag_metrics import LagCollector

        is_gateway = self.settings.is_gateway
        return [LagCollector(self.lag, lambda: self.clock.wall_ms() / 1000, of_cluster=is_gateway)]

    async def _preview_expiry(self, within_ms: int) -> object:
        failed = self.leadership.failed_partitions
        return await preview_expiry(self.manager, failed, self.clock, within_ms)

    def start_periodic_jobs(self) -> None:
        """Begin the periodic jobs of the node."""
        settings, every = self.settings, self.scheduler.schedule_periodic_call
        self.scheduler.schedule_periodic_task(
            "expire_offsets", settings.offsets_retention_check_interval_ms, self._expire
        )
        if self.log.upkeep is not None:
            for job in self.log.upkeep.list_jobs():
                self.scheduler.schedule_callback_job(*job)
        every("close_idle_connections", IDLE_CHECK_INTERVAL_MS, self._close_idle)
        every(
            "close_unread_connections",
            CHECK_INTERVAL_MS,
            lambda: self.budget.close_stuck_readers(self.clock.mono_ms()),
        )
        every("watch_limits", LIMITS_INTERVAL_MS, self.limits.check)
        if self.lag.rows_max:
            interval_ms = settings.metrics_lag_interval_ms
            self.scheduler.schedule_periodic_task("measure_lag", interval_ms, self.lag_watch.measure_once)

    # --- periodic jobs ---

    async def _expire(self) -> None:
        if not self.wall_clock.check_wall_clock():
            return
        await delete_expired_offsets(self.manager, self.clock)
        if self.manager.needs_marks:
            await delete_expired_marks(self.group_access.adoptions, self.clock)

    def _close_idle(self) -> None:
        if self.server is not None:
            idle_ns = self.settings.connections_max_idle_ms * 1_000_000
            self.server.close_idle(self.clock.nanos() - idle_ns)

    def _on_append_failed(self, writers: Sequence[LogWriter], error: LogError) -> None:
        assert self.server is not None
        self.server.refuse_replies_of_lost_appends()
        self.leadership.reload_after_lost_appends(writers, error)

    # --- stop ---

    async def stop(self) -> None:
        """Stop accepting, respond to requests under way, flush, and leave whole segments and no journal.

        Takes at most `shutdown.timeout.ms` for the responses; parked requests get NOT_COORDINATOR, so that their
        clients look for another coordinator at once.
        """
        write = log.info if self.serving is not None else log.debug
        write("stopping")
        if self.listener is not None:
            self.listener.stop_accepting()
        self.scheduler.close()
        self.loop_watch.close()
        deadline = self.loop.time() + self.settings.shutdown_timeout_ms / 1000
        if self.server is not None:
            # The offsets of a deleted topic are deleted only in partitions that are served.
            topics = self.server.node.catalogue_store
            topics.refuse_further_changes()
            await self._until(lambda: topics.is_idle, deadline)
        groups = sum(1 for _ in self.manager.current_groups())
        for partition in list(self.leadership.epochs):
            self.leadership.resign(partition, LeaderEpoch(self.leadership.epochs[partition] + 1))
        write("unloaded all partitions", groups=groups)
        if self.server is not None:
            await self._close_connections(self.server, deadline)
        self.group_access.outside_changes.write_all_lines()
        await self._close_parts()
        write("stopped")

    async def _close_connections(self, server: Server, deadline: float) -> None:
        """Close the connections once every request has its response, or at the deadline."""
        await self._until(
            lambda: (
                not (server.has_unparked_work or self.manager.unloading.is_under_way)
                and self.log.groups.is_idle
            ),
            deadline,
        )
        for connection in list(server.connections):
            connection.drop_requests_and_close()

    async def _close_parts(self) -> None:
        """Close what needs the log before the log, and the threads last."""
        await self.leadership.cancel_all_loads()
        if self.admin is not None:
            await self.admin.close()
        self.timers.close()
        self.deadlines.close()
        if self.log.upkeep is not None:
            await self.log.upkeep.stop_jobs()
        with contextlib.suppress(LogError):
            await self.log.groups.close()
        self.io.close()

    async def _until(self, condition: Callable[[], bool], deadline: float) -> None:
        """Poll until the condition or the deadline: a stop happens once, and an event would burden every request."""
        while not condition() and self.loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
