# SPDX-License-Identifier: Apache-2.0
"""Who is there: the brokers of the cluster, our own nodes, and the addresses under which clients reach both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.config import Address
from coordinator.telemetry.logs import get_logger
from protocol.metadata_head import Listed

log = get_logger("gateway")

PORT_MAX: Final = 65_535
DISCOVERED_MAX: Final = 100
"""So many brokers are taken from answers until the supervisor says who is there: each gets a port."""


@dataclass(frozen=True, slots=True)
class OurNode:
    """A node of ours that coordinates groups."""

    node_id: int
    address: Address
    """What clients get to see; a gateway listens on its port."""
    private: Path | Address
    """Where the node itself listens: the path of a Unix socket (which takes PROXY headers), or a plain address."""


class Book:
    """The brokers and nodes that are known, and the addresses that clients get for them."""

    def __init__(
        self, place: Callable[[int], Address | None], discovered: Callable[[int, Address], None]
    ) -> None:
        """Clients reach a broker where `place` says, None for nowhere; `discovered` hears of each broker as an answer
        first names it, before clients do."""
        self._place = place
        self._discovered = discovered
        self.brokers: dict[int, Address] = {}
        """By id, where a gateway reaches them."""
        self.nodes: dict[int, OurNode] = {}
        """By id, ours."""
        self.offsets_topic_id: bytes | None = None
        """The id of the cluster's `__consumer_offsets`; None while it is not known."""
        self.cluster_id: str | None = None
        """The cluster's own; None while it is not known."""
        self._unconfirmed = 0  # how many brokers are known from answers alone

    def set_brokers(self, brokers: Mapping[int, Address]) -> None:
        """These are the brokers now; one that is missing is gone."""
        self.brokers = dict(brokers)
        self._unconfirmed = 0

    def set_nodes(self, nodes: Mapping[int, OurNode]) -> None:
        """These are our nodes now."""
        self.nodes = dict(nodes)

    def move(self, broker: Listed) -> Listed | None:
        """The broker as clients are to know it; None where no port can be had for it.

        Of a broker that was not known its address is kept; of one that was, what the supervisor says counts.
        """
        place = self._place(broker.node_id)
        if place is None:
            return None
        if broker.node_id not in self.brokers:
            if self._unconfirmed >= DISCOVERED_MAX:
                return None
            self._unconfirmed += 1
            address = Address(broker.host, broker.port)
            self.brokers[broker.node_id] = address
            self._discovered(broker.node_id, address)
        return broker._replace(host=place.host, port=place.port)

    def moved(self, brokers: list[Listed]) -> list[Listed]:
        """All of these as clients are to know them, and our own nodes."""
        ours = (Listed(node.node_id, *node.address, None) for node in self.nodes.values())
        return [*(moved for moved in map(self.move, brokers) if moved is not None), *ours]
