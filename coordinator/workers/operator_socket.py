# SPDX-License-Identifier: Apache-2.0
"""The supervisor's socket for operators, in the data directory: users who may read its files may use the socket."""

import asyncio
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from coordinator.config import Address
from coordinator.telemetry.logs import get_logger
from coordinator.topology.view import NO_NODE
from coordinator.workers.assignment import OrderRefused
from coordinator.workers.channel import Channel
from coordinator.workers.operator_orders import (
    ORDER_BYTES_MAX,
    Answer,
    Drain,
    ListPartitions,
    Move,
    NodeDescription,
    Order,
    PartitionState,
    ReadSettings,
    socket_path,
)
from coordinator.workers.process_settings import replace_with_absolute_paths
from protocol.newtypes import Partition

if TYPE_CHECKING:
    from coordinator.workers.supervisor import Supervisor

log = get_logger("control")


class ControlSocket:
    """Takes orders for a supervisor; the supervisor holds the data directory's lock, so no other such socket exists."""

    def __init__(self, supervisor: "Supervisor", data_dir: Path) -> None:
        self._supervisor = supervisor
        self._path = socket_path(data_dir)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen on the socket. Raises OSError."""
        self._path.unlink(missing_ok=True)  # of a supervisor that was killed
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # closed to others from its first moment on
        try:
            sock.bind(str(self._path))
        finally:
            os.umask(before)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._connected, sock=sock)

    def _connected(self) -> Channel[Order]:
        def got(order: Order) -> None:
            channel.send(self._carry_out(order))

        def lost(reason: str) -> None:
            if channel.was_nonsense:
                log.warning("refused an order", reason=reason)

        channel: Channel[Order] = Channel(Order, got, lost, message_bytes_max=ORDER_BYTES_MAX)
        return channel

    def _carry_out(self, order: Order) -> Answer:
        supervisor = self._supervisor
        try:
            match order:
                case Move():
                    supervisor.assignment.move(order.partition, order.to)
                case Drain():
                    supervisor.assignment.drain(order.node)
                case ListPartitions():
                    return Answer(partition_states(supervisor), node_states(supervisor))
                case ReadSettings():
                    return Answer(settings=replace_with_absolute_paths(supervisor.settings))
        except OrderRefused as error:
            return Answer(refused=str(error))
        log.info("received an order", order=type(order).__name__, **msgspec.structs.asdict(order))
        supervisor.apply_assignment()
        return Answer(partition_states(supervisor), node_states(supervisor))

    async def close(self) -> None:
        """Take no more orders, and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)


def partition_states(supervisor: "Supervisor") -> list[PartitionState]:
    """Return the current state of every partition."""
    return [
        _partition_state(supervisor, Partition(partition))
        for partition in range(len(supervisor.assignment.places))
    ]


def _partition_state(supervisor: "Supervisor", partition: Partition) -> PartitionState:
    place = supervisor.assignment.places[partition]
    if place.failed:
        reason = supervisor.describe_failure(partition)
        return PartitionState(partition, NO_NODE, place.epoch, "failed", reason)
    leader = place.leader
    if leader is None:
        return PartitionState(partition, NO_NODE, place.epoch, "moving")
    loaded = supervisor.loaded.get(partition)
    if loaded is None or loaded.leader_epoch != place.epoch:
        return PartitionState(partition, leader, place.epoch, "loading")
    if loaded.failure is not None:
        return PartitionState(partition, leader, place.epoch, "failed", loaded.failure)
    return PartitionState(partition, leader, place.epoch, "online")


def node_states(supervisor: "Supervisor") -> list[NodeDescription]:
    """Return the state of every node that serves or is to serve."""
    return [_node_state(supervisor, node) for node in supervisor.nodes if node not in supervisor.ended]


def _node_state(supervisor: "Supervisor", node: int) -> NodeDescription:
    serves = supervisor.serving.get(node)
    worker = supervisor.workers.get(node)
    state = "starting" if serves is None else "serving"
    if node in supervisor.assignment.draining:
        state = "draining"
    address = str(Address(*serves.advertised)) if serves is not None else None
    pid = worker.pid if worker is not None else None
    return NodeDescription(node, state, address, pid, supervisor.fleet.restarts.total_deaths_of_node(node))
