# SPDX-License-Identifier: Apache-2.0
"""The topology that a gateway's processes know: our own nodes, and the brokers of the cluster behind them."""

from collections.abc import Sequence

import msgspec

from coordinator.topology.view import Broker


class ServingNode(msgspec.Struct, frozen=True, array_like=True):
    """One of our nodes that serves: its address for clients, and the path of its private socket."""

    node_id: int
    host: str
    port: int
    socket: str


class GatewayView(msgspec.Struct, frozen=True):
    """The nodes and brokers that a gateway knows; a new view comes whenever something changes.

    `brokers` are the cluster's, with their real addresses, and none while it has not responded yet.
    `offsets_topic_id` is the id of the cluster's `__consumer_offsets`, and `cluster_id` the cluster's; each is None
    while it is not known.
    """

    nodes: tuple[ServingNode, ...] = ()
    brokers: tuple[Broker, ...] = ()
    offsets_topic_id: bytes | None = None
    cluster_id: str | None = None


class BrokerState(msgspec.Struct, frozen=True, array_like=True):
    """One broker of the cluster as of its last response; `error` is one line, None while it responds."""

    node_id: int
    address: str
    error: str | None


class UpstreamState(msgspec.Struct, frozen=True):
    """The state of the cluster; `cluster_id` is None until its first response, `error` the reason if it fails now."""

    cluster_id: str | None = None
    error: str | None = None
    brokers: Sequence[BrokerState] = ()
    offsets_topic: tuple[bytes, int] | None = None
    """The id and number of partitions of the cluster's own `__consumer_offsets`; None if it has no such topic."""

    @property
    def is_well(self) -> bool:
        """True if the cluster and all of its brokers respond."""
        return self.error is None and all(broker.error is None for broker in self.brokers)

    def to_operator_fields(self) -> dict[str, object]:
        """Return the state as operators read it."""
        return {
            "cluster_id": self.cluster_id,
            "error": self.error,
            "brokers": {str(b.node_id): {"address": b.address, "error": b.error} for b in self.brokers},
        }
