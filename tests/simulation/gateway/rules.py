# SPDX-License-Identifier: Apache-2.0
"""What must hold of a gateway, whatever the cluster and the clients do."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from coordinator.gateway.buffer_budget import COUNTED_FROM_BYTES
from protocol.apis import ApiKey
from tests.simulation.gateway.model import Caller
from tests.simulation.gateway.permits import Permit
from tests.simulation.gateway.settings import (
    BROKER_DOMAIN,
    CACHE_MS,
    GATEWAY_HOST,
    KEPT_BYTES_MAX,
    MOVED,
    OUR_ID_FIRST,
    OWN,
    PORT_BASE,
)
from tests.simulation.history import Broken, History, Key

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

SERVED_S: Final = 12.0
GIVEN_S: Final = 100.0
"""Longer than a group takes to be given back, whatever goes wrong at first."""
LATE_S: Final = 12.0
"""A decision may be older than its cache by this: it was on its way, or what waited for it did."""
UNCOUNTED_BYTES: Final = COUNTED_FROM_BYTES
"""What a connection may keep beyond the budget."""


class GatewayHistory(History):
    """What is committed here and at the cluster together: a tombstone here is no deletion, as groups move there."""

    def is_being_deleted(self, key: Key) -> bool:
        return True

    def removed(self, key: Key) -> None:
        self.counts["tombstones"] += 1

    def forgotten(self, group: str) -> None:
        self.counts["groups forgotten"] += 1


class Rules:
    """Raises Broken."""

    def __init__(self, world: "GatewayWorld") -> None:
        self._world = world
        self._hidden = BROKER_DOMAIN.encode()

    # --- addresses ---

    def leaves(self, _number: int, frame: bytes) -> None:
        """An answer leaves for a client; the gateway would take what is raised here for a fault of its own."""
        if self._hidden in frame:
            self._world.fail(Broken("no broker address reaches a client", f"{frame[:300]!r}"))

    def leads_to(self, places: Iterable[Any]) -> None:
        """An answer names these places, each with an id, a host and a port."""
        for node_id, host, port in places:
            if node_id < 0:
                continue
            ours = node_id - OUR_ID_FIRST
            wanted = self._world.settings.listen.port + ours if ours >= 0 else PORT_BASE + node_id
            if (host, port) != (GATEWAY_HOST, wanted):
                raise Broken("no broker address reaches a client", f"node {node_id} is at {host}:{port}")

    # --- who asks ---

    def cluster_is_asked(self, caller: Caller, api: ApiKey, _request: Any) -> None:
        """A broker has got a request; clients say in their ids who they are."""
        user, slash, _ = caller.client_id.partition("/")
        if slash and user != caller.user:
            raise Broken("a request reaches the cluster as its client's", f"{caller} asks {api.name}")

    # --- permissions ---

    def may_see(self, user: str, permit: Permit, asked_s: float) -> None:
        """A client got what this permission is for."""
        self._world.history.counts["permitted"] += 1
        now_s = self._world.loop.time()
        from_s = asked_s - CACHE_MS / 1000 - LATE_S
        if not self._world.permits.had(user, permit, from_s, now_s):
            raise Broken(
                "no client gets what the cluster would refuse",
                f"{user} has not had {permit} since {from_s:.4f}",
            )

    def may_not_see(self, user: str, permit: Permit, asked_s: float) -> None:
        """A client was refused for want of this permission."""
        self._world.history.counts["refused"] += 1
        now_s = self._world.loop.time()
        from_s = asked_s - CACHE_MS / 1000 - LATE_S
        if self._world.permits.had_all_along(user, permit, from_s, now_s):
            raise Broken(
                "no client is refused what the cluster allows",
                f"{user} has had {permit} since {from_s:.4f}",
            )

    # --- memory ---

    def look(self) -> None:
        """No buffer exceeds its limit."""
        for body in self._world.gateways:
            gateway = body.gateway
            if gateway is None:
                continue
            if gateway.closed["fault"]:
                raise Broken("no connection ends by a fault of ours", f"{body.name}")
            kept = sum(relay.waiting_bytes for relay in gateway.relays)
            counts = self._world.history.counts
            counts["most kept"] = max(counts["most kept"], kept)
            limit = KEPT_BYTES_MAX + UNCOUNTED_BYTES * len(gateway.relays)
            if kept > limit:
                raise Broken("no buffer exceeds its limit", f"{kept} bytes are kept, of {limit}")
            if gateway.buffer_budget.total_bytes > KEPT_BYTES_MAX:
                raise Broken(
                    "no buffer exceeds its limit", f"{gateway.buffer_budget.total_bytes} bytes are counted"
                )

    # --- that it goes on ---

    def all_is_served(self) -> None:
        """After a while without trouble every port is answered at, and every group is served that can be."""
        world = self._world
        since_s = world.loop.time() - SERVED_S
        for port in world.ports():
            if world.answered_at.get(port, 0.0) < since_s:
                raise Broken("calm brings everything back", f"nobody is answered at port {port}")
        for group, quiet_since in world.quiet_since.items():
            if quiet_since < world.loop.time() - GIVEN_S:
                raise Broken("calm brings everything back", f"{group} cannot be given back")
        for group in (OWN, *MOVED):
            there = world.model.groups.get(group)
            is_free = not world.is_quiet(group) and (there is None or there.free_since() < since_s)
            if is_free and world.committed_at.get(group, 0.0) < since_s:
                raise Broken("calm brings everything back", f"no commit of {group} is taken")

    def nothing_is_left(self) -> None:
        """All clients are gone: so is all that was kept for them."""
        for body in self._world.gateways:
            gateway = body.gateway
            if gateway is not None and (gateway.relays or gateway.buffer_budget.total_bytes):
                left = f"{len(gateway.relays)} connections, {gateway.buffer_budget.total_bytes} bytes"
                raise Broken("what is kept for a client goes with it", left)
