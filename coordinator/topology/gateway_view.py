# SPDX-License-Identifier: Apache-2.0
"""What a gateway's processes know of the world: our own nodes, and the brokers of the cluster behind them."""

from collections.abc import Sequence

import msgspec

from coordinator.topology.view import Broker


class OwnNode(msgspec.Struct, frozen=True, array_like=True):
    """One of our nodes that serves: what clients hear of it, and the path of its private socket."""

    node_id: int
    host: str
    port: int
    socket: str


class GatewayView(msgspec.Struct, frozen=True):
    """All of it; a new one comes whenever something changes.

    `brokers` are the cluster's, with their real addresses, and none while it has not answered yet.
    `offsets_topic_id` is the id of the cluster's `__consumer_offsets`, and `cluster_id` its own; each is None while it
    is not known.
    """

    nodes: tuple[OwnNode, ...] = ()
    brokers: tuple[Broker, ...] = ()
    offsets_topic_id: bytes | None = None
    cluster_id: str | None = None


class BrokerState(msgspec.Struct, frozen=True, array_like=True):
    """One broker of the cluster, as its last answer was; `error` is one line, None while it answers."""

    node_id: int
    address: str
    error: str | None


class UpstreamState(msgspec.Struct, frozen=True):
    """How the cluster is. `cluster_id` is None until it has answered once; `error` says why it does not answer now."""

    cluster_id: str | None = None
    error: str | None = None
    brokers: Sequence[BrokerState] = ()
    offsets_topic: tuple[bytes, int] | None = None
    """The id of the cluster's own `__consumer_offsets`, and how many partitions it has; None where it has none."""

    @property
    def is_well(self) -> bool:
        """Whether all of it answers."""
        return self.error is None and all(broker.error is None for broker in self.brokers)

    def shown(self) -> dict[str, object]:
        """As operators read it."""
        return {
            "cluster_id": self.cluster_id,
            "error": self.error,
            "brokers": {str(b.node_id): {"address": b.address, "error": b.error} for b in self.brokers},
        }
