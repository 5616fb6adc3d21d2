# SPDX-License-Identifier: Apache-2.0
"""What the api handlers see of the node that they run on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from coordinator.catalogue.catalogue import Catalogue
    from coordinator.catalogue.keeper import CatalogueKeeper
    from coordinator.cluster.view import Cluster
    from coordinator.config import Settings
    from coordinator.manager import GroupMetadataManager
    from coordinator.runtime.timers import Timer
    from coordinator.stats import Stats


class Ends(Protocol):
    """Knows how far the groups of other nodes have committed; a node that is alone has none."""

    def ask(
        self, topic: str, partitions: Sequence[int], done: Callable[[dict[int, int] | None], None]
    ) -> None:
        """Call `done` with the furthest offset in each partition; None while somebody cannot tell."""


class Delays(Protocol):
    """The part of timers that api handlers need."""

    def after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> "Timer":
        """Call `callback(argument)` in `delay_ms`, unless the timer is cancelled before."""


@dataclass(slots=True)
class Node:
    """One process as Kafka's clients know it: a broker with an id, in a cluster with an id."""

    settings: "Settings"
    node_id: int
    cluster_id: str
    cluster: "Cluster"
    manager: "GroupMetadataManager"
    catalogue: "Catalogue"
    catalogue_store: "CatalogueKeeper"
    timers: Delays
    stats: "Stats"
    ends: "Ends | None" = None
