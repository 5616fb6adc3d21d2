# SPDX-License-Identifier: Apache-2.0
"""The node as the api handlers that run on it see it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator.authorization.authorizer import ALLOW_ALL, Authorizer
from protocol.apis import ApiVersionRange
from protocol.newtypes import GroupId, Offset

if TYPE_CHECKING:
    from coordinator.catalogue.catalogue import Catalogue
    from coordinator.catalogue.catalogue_writer import CatalogueWriter
    from coordinator.config import Settings
    from coordinator.partitions.client_log_reads import LogReads
    from coordinator.partitions.group_access import GroupAccess
    from coordinator.runtime.timers import Delays
    from coordinator.telemetry.stats import Stats
    from coordinator.topology.view import ClusterTopology


class CommittedEndOffset(NamedTuple):
    """The end offset of a partition, and the time of its commit, in milliseconds of the wall clock."""

    offset: Offset
    committed_ms: int


Partitions = Mapping[str, Collection[int]]
"""The numbers of partitions, by topic."""
EndsByTopic = Mapping[str, Mapping[int, CommittedEndOffset]]
"""The known end offsets, by topic and partition."""


EndsTaker = Callable[[EndsByTopic | None], None]
"""Takes the ends that a group has committed, or None if they are unknown now."""


class CommittedOffsetSource(Protocol):
    """Finds the offsets that groups of other nodes have committed; a single node has no such source."""

    def request_committed_offsets(self, group_id: GroupId, partitions: Partitions, done: EndsTaker) -> None:
        """Call `done` with the group's committed offsets in these partitions, or None if they are unknown now."""


@dataclass(slots=True)
class Node:
    """One process as Kafka's clients know it: a broker with an id, in a cluster with an id."""

    settings: "Settings"
    node_id: int
    cluster_id: str
    cluster: "ClusterTopology"
    group_access: "GroupAccess"
    catalogue: "Catalogue"
    catalogue_store: "CatalogueWriter"
    timers: "Delays"
    stats: "Stats"
    new_producer_id: Callable[[], int]
    reads: "LogReads"
    offers: tuple[ApiVersionRange, ...]
    """The apis and versions that this node serves, for ApiVersions responses."""
    ends: "CommittedOffsetSource | None" = None
    authorizer: Authorizer = ALLOW_ALL
    """Decides what clients may do on this node."""
