# SPDX-License-Identifier: Apache-2.0
"""The address book of a gateway: the cluster's brokers, our nodes, and the addresses that clients get for both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.config import Address
from coordinator.telemetry.logs import get_logger
from protocol.metadata_head import ListedBroker

log = get_logger("gateway")

PORT_MAX: Final = 65_535
DISCOVERED_MAX: Final = 100
"""The limit of brokers that are learned from responses, each of which gets a port, until the supervisor names all."""


@dataclass(frozen=True, slots=True)
class OurNode:
    """A node of ours that coordinates groups."""

    node_id: int
    address: Address
    """The address that clients get; a gateway listens on its port."""
    private: Path | Address
    """The address on which the node listens: the path of a Unix socket, which takes PROXY headers, or host and port."""


class AddressBook:
    """The brokers and nodes that are known, and the addresses that clients get for them."""

    def __init__(
        self, place: Callable[[int], Address | None], discovered: Callable[[int, Address], None]
    ) -> None:
        """Translate addresses by `place`, which maps a broker's id to the address for clients, or to None.

        `discovered` is called with each unknown broker that a response names, before a client gets the response.
        """
        self._place = place
        self._discovered = discovered
        self.brokers: dict[int, Address] = {}
        """The addresses of the brokers, by their ids."""
        self.nodes: dict[int, OurNode] = {}
        """Our nodes, by their ids."""
        self.offsets_topic_id: bytes | None = None
        """The id of the cluster's `__consumer_offsets`, or None while it is unknown."""
        self.cluster_id: str | None = None
        """The id of the cluster, or None while it is unknown."""
        self._unconfirmed = 0  # the number of brokers that are known from responses alone

    def set_brokers(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers by those that the supervisor names."""
        self.brokers = dict(brokers)
        self._unconfirmed = 0

    def set_our_nodes(self, nodes: Mapping[int, OurNode]) -> None:
        """Replace our nodes by those that the supervisor names."""
        self.nodes = dict(nodes)

    def register_and_translate_broker(self, broker: ListedBroker) -> ListedBroker | None:
        """Return the broker with the address for clients, or None if it can have no port.

        The address of an unknown broker is stored; that of a known one is only changed by the supervisor.
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

    def register_brokers_and_list_nodes(self, brokers: list[ListedBroker]) -> list[ListedBroker]:
        """Return these brokers with the addresses for clients, and behind them our nodes.

        Unknown brokers are registered; brokers that can have no port are left out.
        """
        ours = (ListedBroker(node.node_id, *node.address, None) for node in self.nodes.values())
        return [
            *(moved for moved in map(self.register_and_translate_broker, brokers) if moved is not None),
            *ours,
        ]
