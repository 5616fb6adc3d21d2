# SPDX-License-Identifier: Apache-2.0
"""A worker: a node like a single one, except for what its supervisor decides.

`worker_main` gives a worker a process of its own; a simulation has several workers in one process.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from coordinator.api.end_offsets_from_end_groups import find_group_committed_ends
from coordinator.app import App
from coordinator.catalogue.catalogue_writer import CatalogueWriter, Drops
from coordinator.catalogue.file import FILE_NAME as CATALOGUE_FILE
from coordinator.catalogue.limits import TopicLimits
from coordinator.catalogue.names import NAME_LENGTH_MAX
from coordinator.config import Settings
from coordinator.host_resources import HostResources
from coordinator.jobs.lag_from_declared_ends import Ends
from coordinator.lag.lag_book import FoundEnds
from coordinator.logs.files.opening import make_node_log, open_shared_file_log
from coordinator.logs.group_log import wait_for_durability_result, wait_for_ticket_end
from coordinator.node import EndsByTopic, Node, Partitions
from coordinator.node_runtime import start_node_runtime
from coordinator.partitions.group_access import GroupEntry
from coordinator.runtime.slices import Slices
from coordinator.runtime.sockets import private_socket_path
from coordinator.runtime.tasks import Tasks
from coordinator.start_error import CannotStart
from coordinator.tickets import DurabilityTicket, ReplyDependencies
from coordinator.topology.gateway_view import UpstreamState
from coordinator.topology.view import Broker, ClusterTopology
from coordinator.workers import messages
from coordinator.workers.all_nodes_overview import AllNodesOverview
from coordinator.workers.channel import Channel
from coordinator.workers.cluster_end_requests import ClusterEndRequests
from coordinator.workers.cluster_ends_of_groups import ClusterEndsOfGroups
from coordinator.workers.ends_of_other_nodes import fetch_ends_of_other_nodes
from coordinator.workers.offsets_dropped_reporter import OffsetsDroppedReporter
from coordinator.workers.partition_order_handler import PartitionOrderHandler
from coordinator.workers.remote_catalogue import UNKNOWN, CatalogueReplica
from protocol.apis import ApiVersionRange
from protocol.newtypes import GroupId, Partition

if TYPE_CHECKING:
    from coordinator.admin.overview_routes import Overview
    from coordinator.admin.readiness import NodeReadyResponse
    from coordinator.overview.local_group_details import KnownEnds
    from coordinator.overview.local_groups import LagOf

EXIT_FAILED: Final = 1
MISSED_AGAIN_S: Final = 5.0
TOGETHER_S: Final = 0.02
"""The seconds in which all missed topics share one message to the supervisor."""
MISSED_MAX: Final = 10_000
"""The number of missed topics that are remembered for MISSED_AGAIN_S; further ones ask for no refresh."""
ENDS_WITHIN_S: Final = 1.0
"""The seconds for the ends that one page of offsets shows; those that have not come by then are unknown."""
QUESTIONS_FOR_ENDS_MAX: Final = 10
"""More requests than the supervisor sends to the cluster, one after the other, for the ends of partitions."""


class ProcessHooks(Protocol):
    """The effects of a worker on the process that it runs in."""

    def configure(self, settings: Settings, name: int | str) -> None:
        """Configure the process by its settings, such as the form of its log, and give it its name."""

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """Call `on_stall` on the event loop whenever that was held for longer than `stall_ms`."""

    def end_orphaned_worker(self, reason: str) -> None:
        """End the worker in the middle of its work, because the supervisor is gone and it must write nothing more."""


class WorkerApp(App):
    """A node whose partitions, topics and neighbours its supervisor decides."""

    def __init__(
        self,
        welcome: messages.WorkerStart,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        send: Callable[[messages.FromWorker], None],
    ) -> None:
        settings = welcome.settings
        runtime = start_node_runtime(settings, loop, machine)
        file_log = open_shared_file_log(runtime, welcome.topic_id)
        super().__init__(runtime, make_node_log(file_log, runtime, welcome.cluster_id))
        self.stats.worker_restarts = welcome.restarts
        self.cluster = ClusterTopology(welcome.view)
        self.upstream = UpstreamState()
        self.gateways = 0
        """The number of gateway processes that accept clients."""
        self.catalogue_store = CatalogueReplica(
            settings.data_dir / CATALOGUE_FILE,
            welcome.offsets_topic,
            send,
            machine.new_topic_id,
            TopicLimits.from_settings(settings),
        )
        if settings.is_gateway:
            self.catalogue_store.look_for = UnknownTopicRefresher(
                loop.time, loop.call_later, send
            ).refresh_for_topic
            self.group_access.adoptions.on_given_back = lambda group_id: send(
                messages.GroupGivenBackToCluster(group_id)
            )
        self.share = PartitionOrderHandler(self.leadership, file_log, self.stats, send)
        self.catalogue_store.on_version = self.share.note_topics_version
        self.deletion_acks = OffsetsDroppedReporter(send)
        self._dropped_version = UNKNOWN
        """The version of the topics up to which all partitions were ordered to drop offsets in deleted topics."""
        self.ends = CommittedOffsetRequests(send)
        self.all_nodes = AllNodesOverview(send)
        self.cluster_ends = ClusterEndRequests(send)
        self._cluster_ends_of_groups = ClusterEndsOfGroups(
            self.committed_groups,
            self.clock,
            self.cluster_ends,
            QUESTIONS_FOR_ENDS_MAX * settings.upstream_request_timeout_ms / 1000,
        )

    def overview(self) -> "Overview":
        """Return what /api/v1 shows: the groups of all workers."""
        return self.all_nodes

    async def find_declared_ends(self, partitions: Partitions | None = None) -> Ends:
        """Return the ends that end groups of all nodes have committed."""
        ends, leads = dict(await super().find_declared_ends(partitions)), self.group_access.leads
        topics = self.find_topics(partitions)
        others = await fetch_ends_of_other_nodes(
            self.ends, topics, self.settings, leads, self.clock.nanos, partitions
        )
        return ends | others

    async def find_ends(self, partitions: Partitions) -> "KnownEnds":
        """Return the known ends of some partitions; behind a gateway the cluster is asked, for at most a second."""
        if not self.settings.is_gateway:
            return await super().find_ends(partitions)
        try:
            ends = await self.cluster_ends.fetch(partitions, ENDS_WITHIN_S) or {}
        except TimeoutError:
            return {}
        return {topic: {part: end.high for part, end in known.items()} for topic, known in ends.items()}

    async def find_lags(self, partitions: Partitions | None) -> "LagOf":
        """Return the function for the lag of groups; behind a gateway, as of the last measurement."""
        return self._last_lag if self.settings.is_gateway else await super().find_lags(partitions)

    async def _last_lag(self, kept: GroupEntry, _slices: Slices) -> int | None:
        return self.lag.by_group.get(kept.group_id)

    async def find_ends_for_lag(self) -> FoundEnds | None:
        """Return the ends of the partitions of all groups; behind a gateway the cluster is asked."""
        if self.settings.is_gateway:
            return await self._cluster_ends_of_groups.find()
        return await super().find_ends_for_lag()

    def apply_upstream_state(self, state: UpstreamState, gateways: int) -> None:
        """Store the state of the cluster, and the number of gateway processes that accept clients."""
        self.upstream = state
        self.gateways = gateways
        self.stats.upstream_up = state.cluster_id is not None and state.error is None
        if state.offsets_topic is not None:
            self.catalogue_store.replace_offsets_topic(*state.offsets_topic)
        self.stats.upstream_brokers = {broker.node_id: broker.error is None for broker in state.brokers}

    def readiness(self) -> "NodeReadyResponse":
        """Return the readiness of a single node; behind a gateway also that of the cluster and the gateway.

        Without the cluster the node has no topics, and without a gateway process no client can connect.
        """
        found = super().readiness()
        if self.settings.is_gateway:
            state, wanted = self.upstream, self.settings.gateway_workers
            found["ready"] = found["ready"] and state.cluster_id is not None and self.gateways > 0
            found["complete"] = (
                found["complete"] and found["ready"] and state.is_well and self.gateways == wanted
            )
            found["gateways"] = {"serving": self.gateways, "wanted": wanted}
            found["upstream"] = state.to_operator_fields()
        return found

    def record_loop_stall(self) -> None:
        """Count a stall of the event loop that lasted longer than `worker.timeout.ms`."""
        self.stats.loop_stalls += 1

    def open_listening_socket(self) -> tuple[socket.socket, int]:
        """Bind as a single node does; behind a gateway bind a private socket, to which only gateways connect."""
        settings = self.settings
        if not settings.is_gateway:
            return super().open_listening_socket()
        try:
            path = private_socket_path(settings.data_dir, settings.node_id)
            return self.machine.bind_private(path), settings.listen.port
        except OSError as error:
            raise CannotStart(f"data.dir: {error.strerror}") from error

    def lead_initial_partitions(self) -> None:
        """Do nothing, because the supervisor sends the partitions to lead."""

    def open_catalogue(self) -> CatalogueWriter:
        """Return the copy of the supervisor's catalogue."""
        return self.catalogue_store

    def store_completed_offset_drops(self, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Have the supervisor store that these partitions hold no offsets in topics that are being deleted."""
        return self.deletion_acks.report_dropped_offsets(self.catalogue_store.coming_version, partitions)

    async def confirm_drops_of_partition(self, partition: Partition) -> None:
        """Report, before a partition is served, that it has dropped its offsets in deleted topics; wait for the ack."""
        reported = None
        # offsets in topics that are deleted meanwhile are dropped, and reported, after this
        while not self.manager.deleted.has_undropped_offsets(partition):
            # it has dropped offsets in the topics that are being deleted, too
            version = max(self.catalogue_store.version, self._dropped_version)
            if version == reported:
                return
            reported = version
            await wait_for_ticket_end(self.deletion_acks.report_dropped_offsets(version, [partition]))

    def drop_offsets_of_topics_in_steps(self, topics: Sequence[str]) -> Drops:
        """Drop the offsets in deleted topics, in steps, until the drop is durable and the supervisor has stored it."""
        self._dropped_version = self.catalogue_store.coming_version
        yield from super().drop_offsets_of_topics_in_steps(topics)

    def get_cluster_view(self, broker: Broker) -> ClusterTopology:
        """Return the view of all nodes that the supervisor sends."""
        return self.cluster

    def open_catalogue_and_build_node(self, broker: Broker, offers: tuple[ApiVersionRange, ...]) -> Node:
        """Return a node that asks the others what their groups have committed."""
        node = super().open_catalogue_and_build_node(broker, offers)
        node.ends = self.ends
        return node


class UnknownTopicRefresher:
    """Asks for a refresh of the topics when clients name one that the catalogue lacks but the cluster may have."""

    def __init__(
        self,
        now_s: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
        send: Callable[[messages.FromWorker], None],
    ) -> None:
        self._now_s = now_s
        self._later = later
        self._send = send
        self._again_s: dict[str | bytes, float] = {}  # by name or id, oldest first
        self._is_sent = True  # whether the supervisor knows of all missed topics

    def refresh_for_topic(self, topic: str | bytes) -> None:
        """Ask for a refresh of the topics, unless this topic has caused a refresh within the last MISSED_AGAIN_S.

        A name that is too long for a topic is ignored.
        """
        now_s, again_s = self._now_s(), self._again_s
        while again_s:
            oldest, at_s = next(iter(again_s.items()))
            if at_s > now_s:
                break
            del again_s[oldest]
        if topic in again_s or len(again_s) >= MISSED_MAX or len(topic) > NAME_LENGTH_MAX:
            return
        again_s[topic] = now_s + MISSED_AGAIN_S
        if self._is_sent:
            self._is_sent = False
            self._later(TOGETHER_S, self._ask_for_topics)

    def _ask_for_topics(self) -> None:
        self._is_sent = True
        self._send(messages.AskTopicRefresh())


class CommittedOffsetRequests:
    """Asks other nodes through the supervisor what their groups have committed."""

    def __init__(self, send: Callable[[messages.FromWorker], None]) -> None:
        self._send = send
        self._waiting: dict[int, Callable[[EndsByTopic | None], None]] = {}
        self._next = 0

    def request_committed_offsets(
        self, group_id: GroupId, partitions: Partitions, done: Callable[[EndsByTopic | None], None]
    ) -> None:
        """Call `done` with the ends that the group has committed in these partitions; None if not known now."""
        self._next += 1
        self._waiting[self._next] = done
        asked = {topic: tuple(indexes) for topic, indexes in partitions.items()}
        self._send(messages.RelayCommittedOffsetsQuery(self._next, group_id, asked))

    def complete_request(self, answer: messages.RelayedCommittedOffsetsReply) -> None:
        """Pass a response from the supervisor to its caller."""
        self._waiting.pop(answer.request)(answer.ends)


class Worker:
    """The channel to the supervisor, and the node that carries out its messages.

    Connect `channel`, and await `ended`, the exit status; then `close_channel` it.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, machine: HostResources, surroundings: ProcessHooks
    ) -> None:
        self._loop = loop
        self._machine = machine
        self._surroundings = surroundings
        self.channel = Channel(messages.FromSupervisor, self._got, self._orphaned)
        self.app: WorkerApp | None = None
        """The node, once the supervisor has sent its settings."""
        self._tasks = Tasks(self._failed)
        self.ended: asyncio.Future[int] = loop.create_future()

    def _got(self, message: messages.FromSupervisor) -> None:
        if isinstance(message, messages.WorkerStart):
            self._welcome(message)
        elif self.app is not None:
            self._do(self.app, message)

    def _do(self, app: WorkerApp, message: messages.FromSupervisor) -> None:
        match message:
            case messages.LeadPartition():
                app.share.lead(message)
            case messages.ResignPartition():
                app.share.resign(message)
            case messages.ViewUpdate():
                app.cluster.update(message.view)
            case messages.PendingOffsetDrops():
                app.share.note_deleted_topics(message)
            case messages.OffsetDropReportStored():
                app.deletion_acks.end_report_ticket(message)
            case messages.AllTopicsPiece() | messages.TopicsChanged() | messages.TopicChangeReply():
                app.catalogue_store.queue_message(message)
            case messages.Stop():
                self._tasks.start(self._stop(app), "stop")
            case _:
                self._receive(app, message)

    def _receive(self, app: WorkerApp, message: messages.FromSupervisor) -> None:
        """Handle a request or a response of other nodes, or a report about the cluster."""
        match message:
            case messages.CommittedOffsetsQuery():
                self._send_ends(app, message)
            case messages.RelayedCommittedOffsetsReply():
                app.ends.complete_request(message)
            case messages.UpstreamStatus():
                app.apply_upstream_state(message.state, message.gateways)
            case messages.UpstreamEndOffsetsReply():
                app.cluster_ends.receive(message)
            case messages.NodeQuestion():
                self._tasks.start(
                    self._answer(app, message),
                    "answer a question of another process",
                    lambda _error: self.channel.send(messages.NodeAnswer(message.number, None)),
                )
            case messages.NodeAnswerPassedOn() | messages.NodesHaveAnswered():
                app.all_nodes.receive(message)

    async def _answer(self, app: WorkerApp, asked: messages.NodeQuestion) -> None:
        answer = await app.local_overview().answer_question(asked.question)
        self.channel.send(messages.NodeAnswer(asked.number, answer))

    def _welcome(self, welcome: messages.WorkerStart) -> None:
        settings = welcome.settings
        self._surroundings.configure(settings, settings.node_id)
        try:
            app = self.app = WorkerApp(welcome, self._loop, self._machine, self.channel.send)
        except CannotStart as error:
            self._cannot_serve(error)
            return
        self._surroundings.set_stall_ended_callback(settings.worker_timeout_ms, app.record_loop_stall)
        self._tasks.start(self._start(app), "start")

    def _cannot_serve(self, error: CannotStart) -> None:
        self.channel.send(messages.ProcessCannotServe(str(error)))
        self.ended.set_result(EXIT_FAILED)

    def _failed(self, _error: BaseException) -> None:
        """End the worker with a failure, so that the supervisor starts another process."""
        if not self.ended.done():
            self.ended.set_result(EXIT_FAILED)

    async def _start(self, app: WorkerApp) -> None:
        await app.catalogue_store.arrived.wait()
        try:
            serving = await app.start()
        except CannotStart as error:
            self._cannot_serve(error)
            return
        self.channel.send(messages.WorkerListening(serving.listen, serving.advertised, serving.metrics))

    async def _stop(self, app: WorkerApp) -> None:
        app.share.close()
        await app.stop()
        self.ended.set_result(0)

    def _send_ends(self, app: WorkerApp, wanted: messages.CommittedOffsetsQuery) -> None:
        waiting = ReplyDependencies()
        ends = find_group_committed_ends(app.group_access, waiting, wanted.group_id, wanted.partitions)
        answer = messages.CommittedOffsetsReply(wanted.request, ends)
        if waiting.find_undurable_ticket() is None:
            self.channel.send(answer)
            return
        # No node may learn of an offset that a crash can take back.
        self._tasks.start(
            self._send_once_durable(app, wanted, waiting, answer),
            "send committed offsets",
            lambda _error: self.channel.send(messages.CommittedOffsetsReply(wanted.request, None)),
        )

    async def _send_once_durable(
        self,
        app: WorkerApp,
        wanted: messages.CommittedOffsetsQuery,
        waiting: ReplyDependencies,
        answer: messages.CommittedOffsetsReply,
    ) -> None:
        known = await wait_for_durability_result(waiting) and app.group_access.serves(wanted.group_id)
        self.channel.send(answer if known else messages.CommittedOffsetsReply(wanted.request, None))

    def _orphaned(self, reason: str) -> None:
        if not self.ended.done():
            self._surroundings.end_orphaned_worker(reason)

    def close_channel(self) -> None:
        """Send the remaining messages and close the channel."""
        self.channel.close()
