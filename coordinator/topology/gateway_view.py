# SPDX-License-Identifier: Apache-2.0
"""What a gateway's processes know of the world: our own nodes, and the brokers of the cluster behind them."""

from collections.abc import Collection
from typing import Protocol

import msgspec

from coordinator.topology.view import Broker, Leader


class OwnNode(msgspec.Struct, frozen=True, array_like=True):
    """One of our nodes that serves: what clients hear of it, and the path of its private socket."""

    node_id: int
    host: str
    port: int
    socket: str


class GatewayView(msgspec.Struct, frozen=True):
    """All of it; a new one comes whenever something changes.

    `brokers` are the cluster's, with their real addresses, and none while it has not answered yet; `cluster_id` is the
    cluster's, empty until then. `leaders` are ours of each partition of `__consumer_offsets`.
    """

    cluster_id: str = ""
    nodes: tuple[OwnNode, ...] = ()
    brokers: tuple[Broker, ...] = ()
    leaders: tuple[Leader, ...] = ()


class ToSupervisor(Protocol):
    """What a gateway's process says to its supervisor."""

    def refresh(self, topics: Collection[str]) -> None:
        """Have the cluster asked at once: clients name these topics, or a broker, that are not known here.

        Cheap to call for every request: what was said a moment ago is not said again.
        """
