# SPDX-License-Identifier: Apache-2.0
"""The assembly of a worker's node: a node like a single one, except for what its supervisor decides."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from coordinator.app import App
from coordinator.catalogue.file import FILE_NAME as CATALOGUE_FILE
from coordinator.catalogue.limits import TopicLimits
from coordinator.components import NodeComponents
from coordinator.config import Settings
from coordinator.host_resources import HostResources
from coordinator.jobs.lag_from_declared_ends import DeclaredPartitionEnds
from coordinator.logs.files.opening import make_node_log, open_shared_file_log
from coordinator.node_parts import NodeParts, PartitionEnds
from coordinator.node_runtime import start_node_runtime
from coordinator.runtime.sockets import private_socket_path
from coordinator.single_node import open_listening_socket
from coordinator.start_error import CannotStart
from coordinator.topology.gateway_view import UpstreamState
from coordinator.topology.view import ClusterTopology
from coordinator.workers import messages
from coordinator.workers.partition_order_handler import PartitionOrderHandler
from coordinator.workers.questions.all_nodes_overview import AllNodesOverview
from coordinator.workers.questions.cluster_end_requests import ClusterEndRequests
from coordinator.workers.questions.cluster_partition_ends import ClusterPartitionEnds
from coordinator.workers.questions.committed_ends import EndsOfOtherNodes
from coordinator.workers.questions.ends_of_other_nodes import fetch_ends_of_other_nodes
from coordinator.workers.questions.node_questions import NodeQuestions
from coordinator.workers.remote_catalogue import CatalogueReplica
from coordinator.workers.supervisor_topics import SupervisorTopics
from coordinator.workers.unknown_topics import UnknownTopicRefresher

if TYPE_CHECKING:
    from coordinator.admin.readiness import NodeReadyResponse

QUESTIONS_FOR_ENDS_MAX: Final = 10
"""More requests than the supervisor sends to the cluster, one after the other, for the ends of partitions."""


class WorkerNode:
    """A node whose partitions, topics and neighbours its supervisor decides, and what takes the supervisor's messages.

    `app` is the node. Raises CannotStart.
    """

    def __init__(
        self,
        welcome: messages.WorkerStart,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        send: Callable[[messages.FromWorker], None],
    ) -> None:
        runtime = start_node_runtime(welcome.settings, loop, machine)
        file_log = open_shared_file_log(runtime, welcome.topic_id)
        self._welcome = welcome
        self._send = send
        self.cluster = ClusterTopology(welcome.view)
        self.upstream = UpstreamState()
        self.gateways = 0
        """The number of gateway processes that accept clients."""
        self.questions = NodeQuestions(send)
        self._ends_of_others = EndsOfOtherNodes(self.questions)
        self.cluster_ends = ClusterEndRequests(send)
        self.app = App(runtime, make_node_log(file_log, runtime, welcome.cluster_id), self._assemble)
        self.app.stats.worker_restarts = welcome.restarts
        self.share = PartitionOrderHandler(self.app.leadership, file_log, self.app.stats, send)
        self.topics.replica.on_version = self.share.note_topics_version

    def _assemble(self, node: NodeComponents) -> NodeParts:
        settings = node.settings
        replica = CatalogueReplica(
            settings.data_dir / CATALOGUE_FILE,
            self._welcome.offsets_topic,
            self._send,
            node.machine.new_topic_id,
            TopicLimits.from_settings(settings),
        )
        if settings.is_gateway:
            refresher = UnknownTopicRefresher(node.loop.time, node.loop.call_later, self._send)
            replica.look_for = refresher.refresh_for_topic
            node.group_access.adoptions.on_given_back = lambda group_id: self._send(
                messages.GroupGivenBackToCluster(group_id)
            )
        self.topics = SupervisorTopics(replica, node.manager.deleted.has_undropped_offsets, self._send)
        return NodeParts(
            partial(
                _open_private_socket if settings.is_gateway else open_listening_socket, settings, node.machine
            ),
            lambda: None,  # the supervisor sends the partitions to lead
            self.topics,
            lambda _broker: self.cluster,
            self._make_ends(node),
            partial(self._collect_ready_fields, node),
            AllNodesOverview(self.questions),
            self._ends_of_others,
        )

    def _make_ends(self, node: NodeComponents) -> PartitionEnds:
        if node.settings.is_gateway:
            answer_within_s = QUESTIONS_FOR_ENDS_MAX * node.settings.upstream_request_timeout_ms / 1000
            return ClusterPartitionEnds(
                node.committed_groups, node.clock, node.lag, self.cluster_ends, answer_within_s
            )
        leads, nanos = node.group_access.leads, node.clock.nanos
        elsewhere = partial(
            fetch_ends_of_other_nodes, self._ends_of_others.fetch, node.settings, leads, nanos
        )
        return DeclaredPartitionEnds(
            node.manager, node.settings, lambda: self.topics.replica.catalogue, elsewhere
        )

    def _collect_ready_fields(self, node: NodeComponents) -> "NodeReadyResponse":
        """Return the readiness of a single node; behind a gateway also that of the cluster and the gateway.

        Without the cluster the node has no topics, and without a gateway process no client can connect.
        """
        found = node.readiness.collect_ready_fields()
        if node.settings.is_gateway:
            state, wanted = self.upstream, node.settings.gateway_workers
            found["ready"] = found["ready"] and state.cluster_id is not None and self.gateways > 0
            found["complete"] = (
                found["complete"] and found["ready"] and state.is_well and self.gateways == wanted
            )
            found["gateways"] = {"serving": self.gateways, "wanted": wanted}
            found["upstream"] = state.to_operator_fields()
        return found

    def apply_upstream_state(self, state: UpstreamState, gateways: int) -> None:
        """Store the state of the cluster, and the number of gateway processes that accept clients."""
        self.upstream = state
        self.gateways = gateways
        stats = self.app.stats
        stats.upstream_up = state.cluster_id is not None and state.error is None
        if state.offsets_topic is not None:
            self.topics.replica.replace_offsets_topic(*state.offsets_topic)
        stats.upstream_brokers = {broker.node_id: broker.error is None for broker in state.brokers}

    def record_loop_stall(self) -> None:
        """Count a stall of the event loop that lasted longer than `worker.timeout.ms`."""
        self.app.stats.loop_stalls += 1


def _open_private_socket(settings: Settings, machine: HostResources) -> tuple[socket.socket, int]:
    """Return a private socket, to which only gateways connect, and the port of clients. Raises CannotStart."""
    try:
        return machine.bind_private(
            private_socket_path(settings.data_dir, settings.node_id)
        ), settings.listen.port
    except OSError as error:
        raise CannotStart(f"data.dir: {error.strerror}") from error
