# SPDX-License-Identifier: Apache-2.0
"""The supervisor of `groupkeeper serve` with 2 or more `workers`: starts the nodes and alone writes shared state.

It holds the data directory's lock, assigns the partitions (`assignment`), keeps the topic catalogue, and settles the
journals of dead workers. It serves no Kafka client, and no commit passes through it.

It starts no process, opens no socket and reads no clock by itself: workers come from a `Launcher`, everything else from
`HostResources` and the event loop. So a test can run several nodes and their supervisor in one process on simulated
time, with a launcher of its own (see `launcher.py`); `serve.py` passes the real ones.

Two nodes never write the same partition, because no partition is reassigned before its owner has released it, or has
ended for good: a dead worker (`liveness`) is killed and waited for. So a worker needs no lease: one that was stopped
and goes on later was not killed yet, and leads what it has. Workers that lose their supervisor end at once; because
they inherit the directory's lock, no other supervisor starts before they have ended.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from coordinator.catalogue.limits import THE_CLUSTERS_OWN, TopicLimits
from coordinator.catalogue.store import CatalogueStore
from coordinator.config import Settings
from coordinator.host_resources import HostResources
from coordinator.overview.group_list import list_unserved_parts
from coordinator.runtime.sockets import private_socket_path
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.topology import leaders_file
from coordinator.topology.gateway_view import GatewayView, ServingNode
from coordinator.topology.view import NO_NODE, Broker, View
from coordinator.workers import messages
from coordinator.workers.assignment import Assignment, LeadOrder
from coordinator.workers.channel import Channel
from coordinator.workers.dead_worker_journals import JournalTakeover
from coordinator.workers.gateway_process_pool import GatewayProcessPool
from coordinator.workers.process_fleet import ProcessFleet
from coordinator.workers.process_launcher import Launcher
from coordinator.workers.process_settings import node_ids, worker_settings
from coordinator.workers.questions.question_relay import QuestionRelay, Reply
from coordinator.workers.supervisor_topic_changes import WorkerChangeAssembler
from coordinator.workers.topic_feed import TopicFeed, WorkerFeedSubscription
from coordinator.workers.worker_order_sender import WorkerOrderSender
from coordinator.workers.worker_process import WorkerProcess
from protocol.newtypes import GroupId, Partition
from protocol.placement import partition_for
from storage.recovery.shared_directory import SharedDirectoryFiles

if TYPE_CHECKING:
    from coordinator.workers.upstream_sync import UpstreamSync

log = get_logger("supervisor")

RETRY_S: Final = 1.0
"""The seconds to the next try after the disk has refused a write."""
STOP_MARGIN_S: Final = 10.0
"""The seconds beyond `shutdown.timeout.ms` that a worker may take to bring its partitions to the disk."""


class Supervisor:
    """Runs the workers of one data directory, which is open and settled.

    Call `start`, let the loop run, and call `stop`; then close `shared`, clean if `stop` has returned True.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        launch: Launcher,
        shared: SharedDirectoryFiles,
        cluster_id: str,
        launch_gateway: Launcher | None = None,
    ) -> None:
        """`launch_gateway` is needed with `upstream.bootstrap.servers`.

        Raises StorageError, and with these ConfigError and ClusterUnusable.
        """
        self.settings = settings
        self.shared = shared
        self.cluster_id = cluster_id
        self.loop = loop
        self.io = machine.thread(loop, "groupkeeper-io")
        self.fs = machine.fs
        self.nodes = node_ids(settings)
        self._data_dir = settings.data_dir.absolute()
        self.store = self._open_catalogue(machine)
        self.feed = TopicFeed(lambda: self.store.catalogue)
        self.store.on_changed = self.feed.publish_changes
        self.store.topics_version = lambda: self.feed.version
        self.assignment = self._last_assignment()
        self._subscriptions: dict[int, WorkerFeedSubscription] = {}
        self._asked = WorkerChangeAssembler(self.store)
        self.serving: dict[int, messages.WorkerListening] = {}
        self.loaded: dict[Partition, messages.PartitionLoadResult] = {}
        """By partition, the report of its newest leader that it is served, or why it cannot be."""
        self.ended: set[int] = set()
        """Nodes that were drained and have ended: they are not started again."""
        self.questions = QuestionRelay(self._send, loop.call_later)
        self.has_failed = False
        """True if a task of the supervisor has failed, so that the supervisor is to be stopped."""
        self.on_failed: Callable[[], None] = lambda: None
        self._tasks = Tasks(self._failed)
        self._settles = Tasks(self._failed)
        """The tasks that settle the journals of ended processes; `stop` waits for them."""
        self._settling = JournalTakeover(self.io, shared, lambda: self.stopping)
        self.fleet: ProcessFleet[messages.FromWorker] = ProcessFleet(
            settings, loop, self._tasks, launch, title="worker", named="node", kind=messages.FromWorker
        )
        self.fleet.start_one = self._start_worker
        self.fleet.on_message = self._got
        self.fleet.on_exit = self._exited
        self._dispatch = WorkerOrderSender(
            loop,
            self.io,
            self.assignment,
            shared,
            self.store,
            partial(leaders_file.write, machine.fs, settings.data_dir),
            self._channel_to,
            self._tasks,
        )
        self._view_changes = False
        self._stop_requested: set[int] = set()
        self.upstream: UpstreamSync | None = None
        self.gateways: GatewayProcessPool | None = None
        if settings.is_gateway:
            assert launch_gateway is not None, "a gateway needs processes"
            self._stand_before_cluster(launch_gateway)

    def _stand_before_cluster(self, launch_gateway: Launcher) -> None:
        upstream = self.upstream = self._follow_cluster()
        self.gateways = GatewayProcessPool(
            self.settings,
            self.loop,
            self._tasks,
            launch_gateway,
            on_broker_seen=upstream.refresh_soon,
            on_changed=self._send_upstream,
            on_question=self._ask_nodes,
        )

    def _open_catalogue(self, machine: HostResources) -> CatalogueStore:
        settings = self.settings
        store = CatalogueStore(
            settings.data_dir,
            self.io.submit_with_callback,
            fs=machine.fs,
            new_topic_id=machine.new_topic_id,
            limits=TopicLimits.from_settings(settings) if not settings.is_gateway else THE_CLUSTERS_OWN,
        )
        store.load_or_create(settings.offsets_topic_num_partitions)
        store.later = self.loop.call_soon
        return store

    def _last_assignment(self) -> Assignment:
        count = self.settings.offsets_topic_num_partitions
        last = leaders_file.read_partition_leaders(self.fs, self.settings.data_dir, count)
        assignment = Assignment(last, self.nodes)
        for partition in self.shared.failed:
            assignment.places[partition].failed = True
        return assignment

    def _follow_cluster(self) -> "UpstreamSync":
        from coordinator.workers.upstream_sync import UpstreamSync  # which imports a client's library

        return UpstreamSync(self.settings, self.store, self.fs, self.io, self._tasks, self._upstream_changed)

    # --- life

    async def start(self) -> None:
        """Start all workers and return once they serve. Raises ProcessStartFailed if one cannot.

        Behind a gateway connect to the cluster first, and start the gateways last. Raises ClusterUnusable.
        """
        if self.upstream is not None:
            await self.upstream.start_following()
        await self.fleet.start_all(self.nodes)
        for partition in list(self.shared.unread):
            self._tasks.start(self._reopen(partition), f"reopen partition {partition}")
        await self.fleet.wait_until_started()
        if self.gateways is not None:
            await self.gateways.start()

    async def stop(self) -> bool:
        """Have all workers release their partitions and end; return whether nothing is left to recover."""
        self.fleet.is_stopping = True
        if self.gateways is not None:
            self.gateways.stop_accepting()
        if self.upstream is not None:
            await self.upstream.close()
        await self._stop_workers()
        if self.gateways is not None:  # last, as clients learn through them where their groups go
            await self.gateways.stop()
        await self._settles.wait_until_done()
        self._tasks.cancel()
        self.io.close()
        return self._settling.all_settled and not self.has_failed

    async def _stop_workers(self) -> None:
        self.assignment.draining |= set(self.nodes)
        for node, worker in self.workers.items():
            if node not in self.serving:
                worker.kill("stopping while it starts")
        self.apply_assignment()
        deadline = self.loop.time() + self.settings.shutdown_timeout_ms / 1000 + STOP_MARGIN_S
        await self.fleet.wait_and_kill(deadline)

    def _failed(self, _error: BaseException) -> None:
        self.has_failed = True
        self.on_failed()

    @property
    def workers(self) -> dict[int, WorkerProcess[messages.FromWorker]]:
        """The workers that run, by node id."""
        return self.fleet.running

    @property
    def stopping(self) -> bool:
        """True once the supervisor stops."""
        return self.fleet.is_stopping

    # --- workers

    async def _start_worker(self, node: int) -> None:
        worker = await self.fleet.launch(node)
        worker.send(
            messages.WorkerStart(
                settings=worker_settings(self.settings, self.nodes.index(node)),
                cluster_id=self.cluster_id,
                topic_id=self.shared.topic_id,
                offsets_topic=self.store.catalogue.offsets_topic,
                view=self.make_cluster_view(),
                restarts=self.fleet.restarts.total_deaths_of_node(node),
            )
        )
        if self.upstream is not None and self.gateways is not None:
            worker.send(messages.UpstreamStatus(self.upstream.state, self.gateways.serving_count))
        subscription = self._subscriptions[node] = self.feed.subscribe(worker.channel)
        self._tasks.start(subscription.send_until_closed(), f"topics for node {node}")
        log.debug("started a worker", node=node, pid=worker.pid)

    def _exited(self, worker: WorkerProcess[messages.FromWorker], status: int) -> None:
        node = worker.node_id
        if self.upstream is not None:
            self.io.submit_with_callback(partial(self._remove_socket, node), lambda _removed: None)
        self.feed.unsubscribe(self._subscriptions.pop(node))
        self._asked.drop_pieces(node)
        self.serving.pop(node, None)
        self._stop_requested.discard(node)
        had = self.assignment.record_worker_death(node)
        self.questions.fail_questions_to_node(node)
        expected = self.stopping or (status == 0 and node in self.assignment.draining)
        if expected:
            self.ended.add(node)
        write = log.info if expected else log.error
        write("a worker has ended", node=node, status=status, partitions=len(had))
        self.apply_assignment()
        self._settles.start(self._after_exit(node, had, comes_back=not expected), f"settle node {node}")

    async def _after_exit(self, node: int, had: list[Partition], *, comes_back: bool) -> None:
        """Settle the journal of a node whose process is gone, and let its partitions be led again."""
        delay_s = self.fleet.restarts.record_death(node) if comes_back else None
        failed = await self._settling.replay_journal_and_list_damaged(node, had)
        self.assignment.free_lost_node_partitions(
            node, failed=failed, comes_back=delay_s is not None and not self.stopping
        )
        if not comes_back:
            self.assignment.record_drained_node_exit(node)
        self.apply_assignment()
        if comes_back and not self.stopping:
            self._tasks.start(self.fleet.start_again(node), f"start node {node} again")

    async def _reopen(self, partition: Partition) -> None:
        """Let a partition that could not be read at the start be led once it can be read."""
        if await self._settling.recover_unreadable_partition(partition):
            self.assignment.places[partition].failed = False
            self.apply_assignment()

    def _channel_to(self, node: int) -> Channel[messages.FromWorker] | None:
        worker = self.workers.get(node)
        return None if worker is None else worker.channel

    def _send(self, node: int, message: messages.FromSupervisor) -> None:
        worker = self.workers.get(node)
        if worker is not None:
            worker.send(message)

    # --- what workers say

    def _got(self, worker: WorkerProcess[messages.FromWorker], message: messages.FromWorker) -> None:
        node = worker.node_id
        match message:
            case messages.PartitionReleased():
                self._tasks.start(self._released(node, message), f"release of partition {message.partition}")
            case messages.PartitionLoadResult():
                self._loaded(node, message)
            case messages.OffsetsDropped():
                self._dropped(node, message)
            case messages.ChangeTopics():
                self._change_topics(worker, message)
            case messages.AskTopics():
                self._subscriptions[node].start_anew()
            case messages.WorkerListening():
                self._serves(worker, message)
            case messages.ProcessCannotServe():
                log.error("a worker cannot serve", node=node, reason=message.reason)
                self.fleet.note_start_failed(worker, f"worker {node}: {message.reason}")
            case messages.NodeAnswer():
                self.questions.receive_answer(node, message)
            case _:
                self._asked_of_others(worker.send, message)

    def _asked_of_others(
        self, reply: Callable[[messages.FromSupervisor], None], message: messages.FromWorker
    ) -> None:
        """Pass on what a process asks; `reply` sends to this process, and not to the node's next one."""
        match message:
            case messages.AskNodes():
                self._ask_nodes(message, reply)
            case messages.GroupGivenBackToCluster() if self.gateways is not None:
                self.gateways.send_forget_group(message.group_id)
            case messages.AskTopicRefresh() if self.upstream is not None:
                self.upstream.refresh_soon()
            case messages.UpstreamEndOffsetsQuery() if self.upstream is not None:
                self._tasks.start(
                    self._send_cluster_ends(self.upstream, reply, message),
                    "ends of the cluster's partitions",
                    lambda _error: reply(messages.UpstreamEndOffsetsReply(message.request, None)),
                )

    def _ask_nodes(self, asked: messages.AskNodes, reply: Reply) -> None:
        nodes = {node: node in self.serving for node in self.nodes if node not in self.ended}
        places = self.assignment.places
        if asked.group_id is None:
            unled = [
                Partition(number)
                for number, place in enumerate(places)
                if place.failed or place.leader is None
            ]
        else:
            leader = self._leader_of(asked.group_id)
            nodes = {node: serves for node, serves in nodes.items() if node == leader}
            unled = [] if nodes else [partition_for(asked.group_id, len(places))]
        reasons = {
            partition: self.describe_failure(partition) if places[partition].failed else "it is moving"
            for partition in unled
        }
        self.questions.ask(asked, reply, nodes, list_unserved_parts(NO_NODE, reasons))

    def describe_failure(self, partition: Partition) -> str:
        """Return why a failed partition cannot be served."""
        return str(self.shared.failed.get(partition, "its journal is damaged"))

    async def _send_cluster_ends(
        self,
        upstream: "UpstreamSync",
        reply: Callable[[messages.UpstreamEndOffsetsReply], None],
        asked: messages.UpstreamEndOffsetsQuery,
    ) -> None:
        ends = await upstream.fetch_end_offsets(asked.partitions)
        reply(messages.UpstreamEndOffsetsReply(asked.request, ends))

    def _serves(self, worker: WorkerProcess[messages.FromWorker], message: messages.WorkerListening) -> None:
        self.serving[worker.node_id] = message
        self.assignment.note_node_serving(worker.node_id)
        self.fleet.note_serving(worker)
        self.apply_assignment()

    async def _released(self, node: int, message: messages.PartitionReleased) -> None:
        await self._settling.save_released_partition_end(message.partition, message.position)
        if self.assignment.record_release(node, message.partition, message.leader_epoch):
            log.debug("released a partition", partition=message.partition, node=node)
            self.apply_assignment()

    def _remove_socket(self, node: int) -> None:
        """Remove a node's private socket, because commands connect to every socket in the directory."""
        path = private_socket_path(self.settings.data_dir, node)
        if node not in self.workers and self.fs.exists(path):
            self.fs.remove(path)

    def _leader_of(self, group_id: GroupId) -> int | None:
        """Return the node that is to lead a group's partition, None if no node is."""
        places = self.assignment.places
        return places[partition_for(group_id, len(places))].leader

    def _loaded(self, node: int, message: messages.PartitionLoadResult) -> None:
        place = self.assignment.places[message.partition]
        if (place.owner, place.epoch) == (node, message.leader_epoch):
            self.loaded[message.partition] = message

    # --- topics

    def _change_topics(
        self, worker: WorkerProcess[messages.FromWorker], message: messages.ChangeTopics
    ) -> None:
        def done(outcome: bool | BaseException) -> None:
            version = self.feed.version
            # To this process, and no later one of the same node, which would take it for its own result.
            if isinstance(outcome, BaseException):
                worker.send(messages.TopicChangeReply(version, conflict=False, error=str(outcome)))
            else:
                worker.send(messages.TopicChangeReply(version, conflict=not outcome))

        self._asked.collect_piece_and_submit(worker.node_id, message, done)

    def _dropped(self, node: int, message: messages.OffsetsDropped) -> None:
        """Store which deletions a leader has carried out; the next leader gets the rest, even after a restart."""
        places = self.assignment.places
        number = self.store.deletions.number_at(message.version)
        mine = (partition for partition in message.partitions if places[partition].owner == node)
        dropped = {partition: max(number, self._dispatch.handed[partition]) for partition in mine}
        self._note_dropped(self.workers[node], dropped, message.number)

    def _note_dropped(
        self, worker: WorkerProcess[messages.FromWorker], dropped: Mapping[Partition, int], number: int
    ) -> None:
        def noted(is_kept: bool) -> None:
            if is_kept:
                worker.send(messages.OffsetDropReportStored(number))
            else:
                self.loop.call_later(RETRY_S, self._note_dropped, worker, dropped, number)

        places, unread = self.assignment.places, self.shared.unread
        self.store.persist_finished_drops(dropped, noted, lambda p: places[p].failed and p not in unread)

    # --- who leads what

    def make_cluster_view(self) -> View:
        """Return the nodes and the leaders that all nodes report to their clients."""
        draining = self.assignment.draining
        brokers = [
            Broker(node, *serves.advertised)
            for node, serves in sorted(self.serving.items())
            if node not in draining
        ]
        return View(tuple(brokers), tuple(self.assignment.leaders()))

    def apply_assignment(self) -> None:
        """Send the commands, the view and the stops that follow from the state of the assignment."""
        commands = self.assignment.assign_leaders()
        for command in commands:
            if isinstance(command, LeadOrder):
                self.loaded.pop(command.partition, None)
        self._dispatch.enqueue_orders(commands)
        if not self._view_changes:
            self._view_changes = True
            self.loop.call_soon(self._send_view)
        for node in self.assignment.draining & set(self.serving) - self._stop_requested:
            if self.assignment.is_node_without_partitions(node):
                self._stop_requested.add(node)
                self._send(node, messages.Stop())

    def _send_view(self) -> None:
        self._view_changes = False
        viewed = messages.ViewUpdate(self.make_cluster_view())
        for worker in self.workers.values():
            worker.send(viewed)
        self._show_gateways()

    def _upstream_changed(self) -> None:
        self._send_upstream()
        self._show_gateways()

    def _send_upstream(self) -> None:
        if self.upstream is None or self.gateways is None:
            return  # while they are being created
        status = messages.UpstreamStatus(self.upstream.state, self.gateways.serving_count)
        for worker in self.workers.values():
            worker.send(status)

    def _show_gateways(self) -> None:
        if self.gateways is None or self.upstream is None:
            return
        nodes = [
            ServingNode(
                each.node_id, each.host, each.port, str(private_socket_path(self._data_dir, each.node_id))
            )
            for each in self.make_cluster_view().brokers
        ]
        state = self.upstream.state
        topic_id = None if state.offsets_topic is None else state.offsets_topic[0]
        self.gateways.send_view(GatewayView(tuple(nodes), self.upstream.brokers, topic_id, state.cluster_id))
