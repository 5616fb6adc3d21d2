# SPDX-License-Identifier: Apache-2.0
"""Runs a single node, which has its process for itself, and serves until a signal ends it."""

import asyncio
import gc
import socket
from collections.abc import Callable, Sequence
from functools import partial

import uvloop

from coordinator.app import App, ServingAddresses
from coordinator.catalogue.catalogue_writer import CatalogueWriter
from coordinator.catalogue.limits import TopicLimits
from coordinator.catalogue.store import CatalogueStore
from coordinator.components import NodeComponents
from coordinator.config import Settings
from coordinator.host_resources import HostResources, real_machine
from coordinator.jobs.lag_from_declared_ends import DeclaredPartitionEnds
from coordinator.logs.files.opening import open_file_log
from coordinator.logs.group_log import wait_for_ticket_end
from coordinator.logs.node_log import NodeLog
from coordinator.node_parts import NodeParts
from coordinator.node_runtime import NodeRuntime, start_node_runtime
from coordinator.runtime.garbage import GC_THRESHOLDS
from coordinator.runtime.stop_signals import ignore_stop_signals, install_stop_handlers
from coordinator.start_error import CannotStart
from coordinator.telemetry.logs import write_last_line
from coordinator.tickets import NO_PARTITION, DurabilityTicket, end_tickets
from coordinator.topology.leaders_file import start_single_node_leadership
from coordinator.topology.view import Broker, ClusterTopology, Leader, View
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from storage.errors import StorageError


def serve(settings: Settings, announce: Callable[[ServingAddresses], None] = lambda _serving: None) -> int:
    """Run a node until SIGTERM, SIGINT or SIGHUP, calling `announce` once it serves.

    Returns the exit code: 1, after one line on stderr, if the node cannot start.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        return uvloop.run(_serve(settings, announce))
    except CannotStart as error:
        write_last_line(str(error))
        return 1


def open_single_node(settings: Settings, loop: asyncio.AbstractEventLoop, machine: HostResources) -> App:
    """Return a node on the log in its data directory, which it has for itself. Raises CannotStart."""
    runtime = start_node_runtime(settings, loop, machine)
    try:
        return make_single_node(runtime, open_file_log(runtime))
    except CannotStart:
        runtime.io.close()
        raise


def make_single_node(runtime: NodeRuntime, node_log: NodeLog) -> App:
    """Return a node that leads all partitions of a log, and has the catalogue of topics for itself."""
    return App(runtime, node_log, _assemble)


def _assemble(node: NodeComponents) -> NodeParts:
    topics = OwnTopics(node)
    return NodeParts(
        partial(open_listening_socket, node.settings, node.machine),
        partial(_lead_all_partitions, node),
        topics,
        partial(_make_cluster_view, node),
        DeclaredPartitionEnds(node.manager, node.settings, lambda: topics.store.catalogue),
        node.readiness.collect_ready_fields,
    )


def open_listening_socket(settings: Settings, machine: HostResources) -> tuple[socket.socket, int]:
    """Return a socket that listens, and its port. Raises CannotStart."""
    try:
        sock = machine.bind(settings.listen)
    except OSError as error:
        raise CannotStart(f"listen: {error.strerror}") from error
    return sock, sock.getsockname()[1]


def _lead_all_partitions(node: NodeComponents) -> None:
    settings, count = node.settings, node.settings.offsets_topic_num_partitions
    try:
        epochs = start_single_node_leadership(node.machine.fs, settings.data_dir, settings.node_id, count)
    except StorageError as error:
        raise CannotStart(str(error)) from error
    for partition, epoch in enumerate(epochs):
        node.leadership.become_leader(Partition(partition), epoch)


def _make_cluster_view(node: NodeComponents, broker: Broker) -> ClusterTopology:
    """Return the cluster that clients see: this node, which leads all partitions."""
    epochs = node.leadership.epochs
    leaders = tuple(Leader(broker.node_id, epochs[partition]) for partition in sorted(epochs))
    cluster = ClusterTopology(View((broker,), leaders))
    node.leadership.on_epoch_assigned = lambda partition, epoch: cluster.replace_leader(
        partition, Leader(broker.node_id, epoch)
    )
    return cluster


class OwnTopics:
    """The topics of a node that has a catalogue for itself (`NodeTopics`)."""

    def __init__(self, node: NodeComponents) -> None:
        self._node = node
        self.store = CatalogueStore(
            node.settings.data_dir,
            node.io.submit_with_callback,
            fs=node.machine.fs,
            new_topic_id=node.machine.new_topic_id,
            limits=TopicLimits.from_settings(node.settings),
        )
        self._dropped_upto = 0
        """The number of the last deleted topic whose offsets all partitions were to drop."""

    def open(self) -> CatalogueWriter:
        """Load the catalogue, and return it. Raises CannotStart."""
        try:
            self.store.load_or_create(self._node.settings.offsets_topic_num_partitions)
        except StorageError as error:
            raise CannotStart(str(error)) from error
        self.begin_drops()
        for partition in self._node.leadership.epochs:
            undropped = frozenset(self.store.deletions.undropped_topics(partition))
            self._node.manager.deleted.note(partition, undropped)
        return self.store

    def begin_drops(self) -> None:
        """Note that from now on all partitions drop the offsets in the topics that are being deleted."""
        self._dropped_upto = self.store.deletions.number

    def store_finished_drops(self, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Store that partitions durably hold no offsets in deleted topics; return a ticket that ends once stored."""
        return self._store(partitions, self._dropped_upto)

    def _store(self, partitions: Sequence[Partition], upto: int) -> DurabilityTicket:
        noted = DurabilityTicket(NO_PARTITION, 0)
        self.store.persist_finished_drops(
            dict.fromkeys(partitions, upto),
            lambda kept: end_tickets([noted], None if kept else ErrorCode.KAFKA_STORAGE_ERROR),
            self._node.leadership.damaged.__contains__,
        )
        return noted

    async def confirm_drops(self, partition: Partition) -> None:
        """Store that a partition, about to be served, has dropped its offsets in deleted topics; wait for that."""
        upto = self._dropped_upto  # more topics may be deleted meanwhile, and are to be dropped first
        while True:
            noted = self._store([partition], upto)
            await wait_for_ticket_end(noted)
            if noted.is_durable:
                return
            await asyncio.sleep(self._node.leadership.retry_s)


async def _serve(settings: Settings, announce: Callable[[ServingAddresses], None]) -> int:
    loop = asyncio.get_running_loop()
    app = open_single_node(settings, loop, real_machine())
    stop = asyncio.Event()
    install_stop_handlers(loop, stop.set)
    try:
        announce(await app.start())
        await stop.wait()
    finally:
        await app.stop()
        ignore_stop_signals()
    return 0
