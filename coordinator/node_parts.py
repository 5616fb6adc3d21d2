# SPDX-License-Identifier: Apache-2.0
"""The parts in which a node that stands alone and one of several differ; `app` is composed of them."""

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator.node import CommittedOffsetSource, Partitions
from coordinator.tickets import DurabilityTicket
from protocol.newtypes import Partition

if TYPE_CHECKING:
    from coordinator.admin.overview_routes import Overview
    from coordinator.admin.readiness import NodeReadyResponse
    from coordinator.catalogue.catalogue_writer import CatalogueWriter
    from coordinator.lag.lag_book import FoundEnds
    from coordinator.overview.local_group_details import KnownEnds
    from coordinator.overview.local_groups import LagOf
    from coordinator.topology.view import Broker, ClusterTopology


class NodeTopics(Protocol):
    """The topics of a node, and the record of which partitions have dropped the offsets in deleted ones."""

    def open(self) -> "CatalogueWriter":
        """Return the catalogue, which is loaded. Raises CannotStart."""

    def begin_drops(self) -> None:
        """Note that from now on all partitions drop the offsets in the topics that are being deleted."""

    def store_finished_drops(self, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Store that partitions durably hold no offsets in deleted topics; return a ticket that ends once stored."""

    async def confirm_drops(self, partition: Partition) -> None:
        """Store that a partition, about to be served, has dropped its offsets in deleted topics; wait for that."""


class PartitionEnds(Protocol):
    """The ends of the partitions that groups read."""

    async def find(self, partitions: Partitions) -> "KnownEnds":
        """Return the known ends of some partitions, by topic."""

    async def find_lags(self, partitions: Partitions | None) -> "LagOf":
        """Return the function for the lag of groups that have offsets in these partitions; None means all."""

    async def find_for_lag(self) -> "FoundEnds | None":
        """Return the ends of the partitions of all groups, for the lag; None if they cannot be found now."""


class NodeParts(NamedTuple):
    """The parts of one node."""

    open_listening_socket: Callable[[], tuple[socket.socket, int]]
    """Returns a socket that listens, and the port for clients. Raises CannotStart."""
    lead_initial_partitions: Callable[[], None]
    """Begins to lead the partitions that the node has from the start. Raises CannotStart."""
    topics: NodeTopics
    make_cluster_view: Callable[["Broker"], "ClusterTopology"]
    """Returns the cluster that clients see, with this node's addresses."""
    ends: PartitionEnds
    readiness: Callable[[], "NodeReadyResponse"]
    """Returns the state for /ready: `ready` if most partitions are served, `complete` if all can be written, too."""
    overview: "Overview | None" = None
    """The data of /api/v1; None for that of this node alone."""
    committed_offsets: CommittedOffsetSource | None = None
    """Finds what groups of other nodes have committed; None for a node alone."""
