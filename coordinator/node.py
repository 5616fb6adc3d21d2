# SPDX-License-Identifier: Apache-2.0
"""What the api handlers see of the node that they run on."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator.authorization.authorizer import ALLOW_ALL, Authorizer
from protocol.apis import Offer
from protocol.names import GroupId, Offset

if TYPE_CHECKING:
    from coordinator.catalogue.catalogue import Catalogue
    from coordinator.catalogue.catalogue_writer import CatalogueWriter
    from coordinator.config import Settings
    from coordinator.partitions.group_access import GroupAccess
    from coordinator.partitions.log_reads import LogReads
    from coordinator.runtime.timers import Delays
    from coordinator.telemetry.stats import Stats
    from coordinator.topology.view import Cluster


class EndOffset(NamedTuple):
    """The end of a partition, and when it was committed, in milliseconds of the wall clock."""

    offset: Offset
    committed_ms: int


Partitions = Mapping[str, Collection[int]]
"""Some partitions, by topic."""
EndsByTopic = Mapping[str, Mapping[int, EndOffset]]
"""The ends that are known, by topic and partition."""


class EndOffsetSource(Protocol):
    """Knows what groups of other nodes have committed; a node that is alone has none."""

    def ask(
        self, group_id: GroupId, partitions: Partitions, done: Callable[[EndsByTopic | None], None]
    ) -> None:
        """Call `done` with what the group has committed in these partitions; None where that is not known now."""


@dataclass(slots=True)
class Node:
    """One process as Kafka's clients know it: a broker with an id, in a cluster with an id."""

    settings: "Settings"
    node_id: int
    cluster_id: str
    cluster: "Cluster"
    group_access: "GroupAccess"
    catalogue: "Catalogue"
    catalogue_store: "CatalogueWriter"
    timers: "Delays"
    stats: "Stats"
    new_producer_id: Callable[[], int]
    reads: "LogReads"
    offers: tuple[Offer, ...]
    """What ApiVersions answers: the apis and versions that this node serves."""
    ends: "EndOffsetSource | None" = None
    authorizer: Authorizer = ALLOW_ALL
    """What clients may do here."""
