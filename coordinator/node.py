# SPDX-License-Identifier: Apache-2.0
"""What the api handlers see of the node that they run on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from coordinator.catalogue.catalogue import Catalogue
    from coordinator.catalogue.store import CatalogueStore
    from coordinator.config import Settings
    from coordinator.manager import GroupMetadataManager
    from coordinator.runtime.timers import Timers
    from coordinator.stats import Stats


class Endpoint(NamedTuple):
    """Where clients reach a node."""

    host: str
    port: int


@dataclass(slots=True)
class Node:
    """One process as Kafka's clients know it: a broker with an id, in a cluster with an id."""

    settings: "Settings"
    node_id: int
    cluster_id: str
    endpoint: Endpoint
    manager: "GroupMetadataManager"
    catalogue: "Catalogue"
    catalogue_store: "CatalogueStore"
    timers: "Timers"
    stats: "Stats"
