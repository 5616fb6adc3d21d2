# SPDX-License-Identifier: Apache-2.0
"""The state that all connections of a listener share."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from coordinator.api.single_api_version import SingleApiVersion
from coordinator.api.slices import PIECES_FROM_BYTES
from coordinator.api.table import Capabilities
from coordinator.net.connection_limits import ConnectionQuotas
from coordinator.net.fair_queue import FairQueue
from coordinator.net.long_requests import LongRequestSlots
from coordinator.net.response_budget import ResponseBudget
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats

log = get_logger("connection")

LINGER_S: Final = 5.0


class OpenConnection(Protocol):
    """The interface of a connection that its server uses."""

    last_active_ns: int
    """The time, by `Clock.nanos`, of the connection's last request or response."""

    @property
    def peer(self) -> str:
        """The address of its client, for the log."""

    @property
    def has_unparked_work(self) -> bool:
        """True if a request other than a parked one is still to be answered."""

    @property
    def is_idle(self) -> bool:
        """True if no request is unanswered."""

    def refuse_replies_of_lost_appends(self) -> None:
        """Turn every reply that depends on a lost append into an error."""

    def close(self) -> None:
        """Close the connection once all written bytes have been sent."""

    def drop_requests_and_close(self) -> None:
        """Close the connection, and drop the requests that are not carried out yet."""


class Server:
    """The parts of a node that a connection needs, and all the connections."""

    def __init__(
        self,
        node: Any,
        capabilities: Capabilities,
        stats: Stats,
        admission: ConnectionQuotas,
        budget: ResponseBudget,
        *,
        request_bytes_max: int,
        queued_bytes_max: int,
        fair_queue: FairQueue,
        frame_bounds: Mapping[int, int],
    ) -> None:
        self.node = node
        self.capabilities = capabilities
        self.routes: dict[int, SingleApiVersion] = capabilities.routes
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
        """The seconds within which the peer of a closed connection has to read what was written."""
        self.connections: set[OpenConnection] = set()

    def admit(self, connection: OpenConnection, address: str) -> bool:
        """Count a connection; return False if there are too many, or too many from its client's address."""
        if not self.admission.admit(address):
            self.stats.connections_refused += 1
            return False
        self.stats.connections_accepted += 1
        self.connections.add(connection)
        return True

    def forget_connection(self, connection: OpenConnection, address: str) -> None:
        """Forget a connection that is gone, whether it was admitted or not."""
        if connection in self.connections:
            self.connections.discard(connection)
            self.admission.leave(address)

    def close_idle(self, before_ns: int) -> None:
        """Close the idle connections that have received nothing since `before_ns` (by `Clock.nanos`)."""
        for connection in [c for c in self.connections if c.last_active_ns < before_ns and c.is_idle]:
            self.stats.connections_idle_closed += 1
            log.debug("closing an idle connection", peer=connection.peer)
            connection.close()

    def refuse_replies_of_lost_appends(self) -> None:
        """Turn every reply that depends on a lost append into an error."""
        for connection in list(self.connections):  # a parked request may have seen the lost data, too
            connection.refuse_replies_of_lost_appends()

    @property
    def has_unparked_work(self) -> bool:
        """True if a request other than a parked one is still to be answered on any connection."""
        return any(connection.has_unparked_work for connection in self.connections)
