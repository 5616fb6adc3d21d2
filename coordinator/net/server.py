# SPDX-License-Identifier: Apache-2.0
"""What all connections of a listener share."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from coordinator.api.handled import VersionedApi
from coordinator.api.slices import PIECES_FROM_BYTES
from coordinator.api.table import Capabilities
from coordinator.net.fair_queue import FairQueue
from coordinator.net.limits import Admission
from coordinator.net.long_requests import LongRequestSlots
from coordinator.net.response_budget import ResponseBudget
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats

log = get_logger("connection")

LINGER_S: Final = 5.0


class OpenConnection(Protocol):
    """A connection as the server knows it."""

    last_active_ns: int
    """When it last asked or was sent anything, by `Clock.nanos`."""

    @property
    def peer(self) -> str:
        """The address of its client, for the log."""

    @property
    def busy(self) -> bool:
        """Whether a reply is still to come, but for that of a parked request."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked that is not answered."""

    def refuse_lost(self) -> None:
        """Turn every reply that depends on a lost append into an error."""

    def close(self) -> None:
        """Close it after what was written has left."""

    def drop(self) -> None:
        """Close it, and drop the requests that are not carried out yet."""


class Server:
    """The parts of a node that a connection needs, and all the connections."""

    def __init__(
        self,
        node: Any,
        capabilities: Capabilities,
        stats: Stats,
        admission: Admission,
        budget: ResponseBudget,
        *,
        request_bytes_max: int,
        queued_bytes_max: int,
        fair_queue: FairQueue,
        frame_bounds: Mapping[int, int],
    ) -> None:
        self.node = node
        self.capabilities = capabilities
        self.routes: dict[int, VersionedApi] = capabilities.routes
        self.stats = stats
        self.admission = admission
        self.budget = budget
        self.long_requests = LongRequestSlots(budget)
        self.request_bytes_max = request_bytes_max
        self.frame_bounds = frame_bounds
        self.queued_bytes_max = queued_bytes_max
        self.fair_queue = fair_queue
        self.pieces_from_bytes = PIECES_FROM_BYTES
        self.linger_s = LINGER_S
        """How long a connection that was closed may take to read what was written to it."""
        self.connections: set[OpenConnection] = set()

    def admit(self, connection: OpenConnection, address: str) -> bool:
        """Count a connection; False where there are too many, or too many from its client's address."""
        if not self.admission.admit(address):
            self.stats.connections_refused += 1
            return False
        self.stats.connections_accepted += 1
        self.connections.add(connection)
        return True

    def leave(self, connection: OpenConnection, address: str) -> None:
        """A connection is gone, which may have been admitted."""
        if connection in self.connections:
            self.connections.discard(connection)
            self.admission.leave(address)

    def close_idle(self, before_ns: int) -> None:
        """Close the connections that ask nothing and have heard nothing since then, by `Clock.nanos`."""
        for connection in [c for c in self.connections if c.last_active_ns < before_ns and c.is_idle]:
            self.stats.connections_idle_closed += 1
            log.debug("closing an idle connection", peer=connection.peer)
            connection.close()

    def refuse_lost(self) -> None:
        """Appends were lost: every reply that depends on one becomes an error."""
        for connection in list(self.connections):  # a parked one may have seen what is lost now, too
            connection.refuse_lost()

    @property
    def busy(self) -> bool:
        """Whether a reply is still to come on any connection, but for the parked ones."""
        return any(connection.busy for connection in self.connections)
