# SPDX-License-Identifier: Apache-2.0
"""The readiness of a gateway process for clients, as its /ready shows it."""

import asyncio
from collections.abc import Callable
from typing import Final

from coordinator.admin.ready_response import ReadyResponse
from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.tls import make_context_for_brokers
from coordinator.runtime.clock import Clock
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.address_probe import probe_address_error
from coordinator.upstream.errors import UpstreamError

log = get_logger("gateway")

CHECK_MS: Final = 2_000
"""The interval at which a broker is asked, and the timeout of its response, in milliseconds."""


class GatewayReady(ReadyResponse):
    """The fields of /ready of a gateway process."""

    listening: bool
    nodes: int
    """The number of our nodes that the process knows."""
    unreachable_since: float | None
    """The time in seconds since the epoch since which no broker answers; None while one does."""
    unreachable: dict[str, str]
    """The errors of the brokers that did not answer the newest check, by broker id."""


class GatewayReadiness:
    """Finds out whether a broker answers: `run` asks one for its versions every CHECK_MS.

    A broker that accepts the connection and stays silent counts as unreachable.
    """

    def __init__(
        self, config: GatewayConfig, book: AddressBook, clock: Clock, is_listening: Callable[[], bool]
    ) -> None:
        """Prepare checks. Raises ValueError if the certificates of the brokers' authority cannot be used."""
        self._book = book
        self._clock = clock
        self._is_listening = is_listening
        self._tls = make_context_for_brokers(config)
        self._timeout_ms = config.unreachable_timeout_ms
        self._incidents = Incidents(log, clock.mono_ms, "warning")
        self._answered_ms: int | None = None
        self._failing_since_ms: int | None = clock.wall_ms()
        self._errors: dict[int, str] = {}
        self._last: int | None = None
        """The broker that answered last."""

    async def run(self) -> None:
        """Check every CHECK_MS until cancelled."""
        while True:
            await self.update_reachability()
            await asyncio.sleep(CHECK_MS / 1000)

    async def update_reachability(self) -> None:
        """Ask the broker that answered last, and all others at once if it does not answer now."""
        brokers = dict(self._book.brokers)
        first = [node_id for node_id in brokers if node_id == self._last]
        others = [node_id for node_id in brokers if node_id != self._last]
        self._errors = {}
        for asked in (first, others):
            found = await asyncio.gather(*(self._ask(brokers[node_id]) for node_id in asked))
            errors = dict(zip(asked, found, strict=True))
            self._errors |= {node_id: str(error) for node_id, error in errors.items() if error is not None}
            answered = [node_id for node_id, error in errors.items() if error is None]
            if answered:
                self._reached(answered[0])
                return
        if self._failing_since_ms is None:
            self._failing_since_ms = self._clock.wall_ms()
        if brokers:
            self._incidents.log_repeated_failure("", "no broker can be reached", brokers=self._shown_errors())

    def _reached(self, node_id: int) -> None:
        self._last, self._answered_ms, self._failing_since_ms = node_id, self._clock.mono_ms(), None
        self._incidents.end_incident("", "a broker can be reached again", broker=node_id)

    async def _ask(self, address: Address) -> UpstreamError | None:
        return await probe_address_error(address, self._tls, CHECK_MS)

    def _shown_errors(self) -> dict[str, str]:
        return {str(node_id): error for node_id, error in sorted(self._errors.items())}

    def collect_ready_fields(self) -> GatewayReady:
        """Return the fields of /ready: `complete` while a broker answers and a node of ours is known, too."""
        answered_ms, since_ms = self._answered_ms, self._failing_since_ms
        is_listening, nodes = self._is_listening(), len(self._book.nodes)
        is_reached = answered_ms is not None and (
            since_ms is None or self._clock.mono_ms() - answered_ms < self._timeout_ms
        )
        ready = is_listening and is_reached
        return {
            "ready": ready,
            "complete": ready and since_ms is None and nodes > 0,
            "listening": is_listening,
            "nodes": nodes,
            "unreachable_since": None if since_ms is None else since_ms / 1000,
            "unreachable": self._shown_errors(),
        }
