# SPDX-License-Identifier: Apache-2.0
"""A gateway with its nodes before a model of a cluster, clients on both, and what goes wrong; all out of one seed."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Final

from coordinator.config import Settings
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import config_from
from coordinator.upstream.groups import UpstreamGroups
from tests.simulation.gateway.brokers import Broker, Mischief
from tests.simulation.gateway.forwarders import Forwarder
from tests.simulation.gateway.hoarders import Hoarder
from tests.simulation.gateway.host import GatewayBody, GatewayHost
from tests.simulation.gateway.model import Model
from tests.simulation.gateway.moved import Committer, Idler, Life
from tests.simulation.gateway.permits import Permit, Permits
from tests.simulation.gateway.rules import GatewayHistory, Rules
from tests.simulation.gateway.settings import (
    BROKERS,
    GROUPS,
    HELD,
    MOVED,
    NOWHERE,
    OFFSETS_TOPIC,
    OWN,
    PASSWORD_FILE,
    PORT_BASE,
    RARE,
    SIDE_PARTITIONS,
    WORK_PARTITIONS,
    WORK_TOPIC,
    gateway_settings,
)
from tests.simulation.gateway.talk import Talk
from tests.simulation.gateway.troubles import GatewayTroubles
from tests.simulation.history import Key, Write
from tests.simulation.network import Port
from tests.simulation.settings import SIDE_TOPIC
from tests.simulation.world import LOOK_S, SETTLED_S, World

STEADY: Final = ("alice", "dave")
"""Users who may do everything all the time."""
CHANGING: Final = ("bob", "carol")
"""Users whose permissions come and go."""
NO_NODE: Final = "eve"
CHANGES_S: Final = 1.5
HOARDERS: Final = 8
UNNOTICED_S: Final = 60.0
"""How long it may take until a deletion at the cluster is noticed here, whatever goes wrong meanwhile."""
GONE_S: Final = 20.0
"""So long after all clients have left nothing is kept for them."""
PERMITS: Final = (
    *(Permit(operation, "GROUP", group) for group in (*GROUPS, NOWHERE) for operation in ("READ", "DELETE")),
    *(Permit("DESCRIBE", "GROUP", group) for group in GROUPS),
    *(
        Permit(operation, "TOPIC", topic)
        for topic in (WORK_TOPIC, SIDE_TOPIC)
        for operation in ("READ", "WRITE")
    ),
    *(Permit("DESCRIBE", "TOPIC", topic) for topic in (WORK_TOPIC, SIDE_TOPIC)),
)


class GatewayWorld(World):
    """Everything."""

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        super().__init__(seed, tracing=tracing)
        self.history = GatewayHistory(self.loop.time, first_value=0x5A17_C0DE_0000_0000)
        self.permits = Permits()
        self.model = Model(self.loop.time, {}, self.permits)
        self.mischief = Mischief(random.Random(f"{seed}/mischief"))
        self.rules = Rules(self)
        self.brokers = [Broker(self, self.model, number, address) for number, address in BROKERS.items()]
        self.swallowed_at = -inf
        """When a broker has last got a request that it never answers."""
        self.talks: set[Talk] = set()
        """Connections that clients have not closed."""
        self.answered_at: dict[Port, float] = {}
        """When somebody was last answered, by the port."""
        self.committed_at: dict[str, float] = {}
        """When a commit was last taken through the gateway, by the group."""
        self.there: UpstreamGroups
        self._uses: Counter[str] = Counter()
        self.quiet_since: dict[str, float] = {}
        """The groups that nobody is to use through the gateway now."""
        self._gone: Mapping[Key, Write] = {}
        self._gone_at = -inf
        self.troubles = GatewayTroubles(self)
        self._begin()

    def _chosen(self) -> Settings:
        return gateway_settings(self.rng.choice((1, 2)))

    @property
    def is_alone(self) -> bool:
        return False

    def _new_host(self) -> GatewayHost:
        return GatewayHost(self)

    def _begin(self) -> None:
        """The cluster is there before the gateway."""
        file = self.disk.open(PASSWORD_FILE, create=True)
        file.pwrite([b"gateway\n"], 0)
        file.fsync()
        self.disk.fsync_dir(PASSWORD_FILE.parent)
        for broker in self.brokers:
            broker.start()
        self.model.create_topic(WORK_TOPIC, WORK_PARTITIONS)
        self.model.create_topic(SIDE_TOPIC, SIDE_PARTITIONS)
        self.model.groups.hold(HELD)
        for user in (*STEADY, *CHANGING):
            for permit in PERMITS:
                self.permits.allow(user, permit, 0.0)
        for user in STEADY:
            self.permits.allow(user, Permit("READ", "TOPIC", OFFSETS_TOPIC), 0.0)

    # --- what clients and rules ask ---

    def has_swallowed_since(self, since_s: float) -> bool:
        """Whether there was a request since then that is never answered."""
        return self.swallowed_at >= since_s

    @property
    def gateways(self) -> list[GatewayBody]:
        """The gateway's processes that run."""
        host = self.host
        return [*host.gateways.values()] if isinstance(host, GatewayHost) else []

    def ports(self) -> list[int]:
        """Where clients may connect."""
        return [PORT_BASE + number for number in BROKERS] + [node.port for node in self.nodes]

    def is_quiet(self, group: str) -> bool:
        """Whether nobody is to use the group through the gateway now."""
        return group in self.quiet_since

    @contextmanager
    def quiet(self, group: str) -> Iterator[None]:
        """Nobody uses the group through the gateway meanwhile."""
        self.quiet_since[group] = self.loop.time()
        try:
            yield
        finally:
            del self.quiet_since[group]

    def begin_use(self, group: str) -> None:
        """A client uses the group."""
        self._uses[group] += 1

    def end_use(self, group: str) -> None:
        """It is answered, or has left."""
        self._uses[group] -= 1

    async def unused(self, group: str) -> None:
        """Return once no client uses the group."""
        while self._uses[group]:  # noqa: ASYNC110 - its time costs nothing
            await asyncio.sleep(0.5)

    def topic_goes(self, topic: str) -> None:
        """A topic is deleted at the cluster, and all that is committed in it."""
        self._gone_at = self.loop.time()
        self._gone = self.history.begin_topic_deletion()
        self.model.delete_topic(topic)

    def may_still_go(self) -> bool:
        """Whether what is committed now in the topic may go with the one that was deleted: not all may know of that."""
        return self.loop.time() < self._gone_at + UNNOTICED_S

    # --- the run ---

    async def _run(self, seconds: float, *, stop: bool) -> None:
        cluster = UpstreamCluster(config_from(self.settings), read=lambda _path: b"gateway")
        self.there = UpstreamGroups(cluster)
        try:
            await super()._run(seconds, stop=stop)
            await self._leave()
        finally:
            await cluster.close()

    async def _leave(self) -> None:
        """All clients go."""
        for talk in sorted(self.talks, key=lambda each: each.end.number):
            talk.drop()
        await asyncio.sleep(GONE_S)
        self.rules.nothing_is_left()

    def _check_served(self) -> None:
        super()._check_served()
        self.rules.all_is_served()

    def _clients(self) -> list[Any]:
        clients: list[Any] = []
        for user in (*STEADY, *CHANGING, NO_NODE):
            clients += [Forwarder(self, f"forwarder-{user}-{number}", user) for number in range(2)]
        clients += [Hoarder(self, f"hoarder-{number}", STEADY[0]) for number in range(HOARDERS)]
        for group in (*MOVED, OWN, HELD):
            for user in ("alice", "bob"):
                clients.append(Committer(self, f"committer-{group}-{user}", user, group))
        clients.append(Idler(self, "idler", "alice", RARE))
        clients += [Life(self, f"life-{group}", "alice", group) for group in MOVED]
        return clients

    async def _change_permissions(self) -> None:
        """Permissions of some users come and go, and stay long enough for what was decided before to be over."""
        rng = random.Random(f"{self.seed}/permissions")
        while True:
            await asyncio.sleep(rng.expovariate(1 / CHANGES_S))
            user, permit, now_s = rng.choice(CHANGING), rng.choice(PERMITS), self.loop.time()
            if rng.random() < 0.5:
                self.permits.allow(user, permit, now_s)
            else:
                self.permits.revoke(user, permit, now_s)

    async def _forget_gone(self) -> None:
        """Once there is peace nothing is seen any more of what was committed in a topic that is gone."""
        while self.loop.time() < self._calm_since + SETTLED_S:  # noqa: ASYNC110 - its time costs nothing
            await asyncio.sleep(1)
        self.history.topic_is_gone(self._gone)

    async def _watch(self) -> None:
        self._spawn(self._change_permissions())
        self._spawn(self._forget_gone())
        while True:
            await asyncio.sleep(LOOK_S / 5)
            self.rules.look()
