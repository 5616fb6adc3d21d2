# SPDX-License-Identifier: Apache-2.0
"""Nodes, their clients, and what goes wrong around them, on one machine; all out of one seed."""

import asyncio
import random
from collections.abc import Callable
from math import inf
from typing import Any

import msgspec

from coordinator.config import Settings
from protocol.newtypes import Partition
from protocol.proxy_header import ProxyHeader, encode_proxy_header
from storage.errors import CorruptLog
from tests.simulation.adopters import Adopter, Mover
from tests.simulation.client import Client
from tests.simulation.committers import (
    Committer,
    Deleter,
    GroupDeleter,
    Repeater,
    SideCommitter,
    Sleeper,
    TopicKeeper,
)
from tests.simulation.disk import MachineDisk
from tests.simulation.history import Broken, History
from tests.simulation.inspection import LOAD_S_MAX, Inspector
from tests.simulation.leavers import Leaver
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedLoop
from tests.simulation.machine import SimulatedClock, Slowness
from tests.simulation.members import Member
from tests.simulation.network import OUTSIDE, ClientEnd, Network
from tests.simulation.node import Body, Host, SimulatedNode
from tests.simulation.settings import ROOT, chosen, chosen_workers
from tests.simulation.sockets import Sockets
from tests.simulation.troubles import Troubles
from tests.simulation.vandals import Vandal
from tests.simulation.wide import WideCommitter
from tests.simulation.workers import SupervisedHost
from tests.storage.faulty import Crash

FAILED_STARTS_MAX = 20
POWER_SHARE = 0.7
"""How many of the crashes take the power along, where that may lose nothing."""
HEARD_S = 30.0
"""After so long the first workers have heard of the topic that stays, and what was answered before has arrived."""
CHANGING_SHARE = 0.4
CHANGE_SHARE = 0.4
"""In how many worlds, and at how many starts of them, `workers` is another number than before."""
MARKS_SHARE = 0.5
"""In how many of the worlds with a gateway no group begins without a mark."""
WIDE_SHARE = 0.25
"""In how many worlds many offsets are committed at once, which takes time."""
CALM_S = 45.0
"""After the last trouble; by its end everything must be served again."""
SETTLED_S = 25.0
"""So long after the last trouble, mostly, nothing of it is left."""
SLOW_TURNS = 20
LOOK_S = 0.5
COMPARE_SHARE = 0.1
REPLAY_SHARE = 0.02
"""How many of the looks compare memory with what was accepted, and read the log itself."""
COMPACT_SHARE = 0.005
"""How many start on a copy of the disk, and compact it."""
CHECKED_SHARE = 0.25
"""How many of the acknowledged commits are looked for on the disk."""


class World:
    """Everything. `run(seconds)` raises what was broken."""

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.seed = seed
        self.tracing = tracing
        self.rng = random.Random(f"{seed}/world")
        self.loop = SimulatedLoop()
        self.loop.set_exception_handler(self._wrong)
        self.network = self.loop.network = Network(self.loop, seed)
        self.sockets = self.loop.sockets = Sockets(self.network, seed)
        self.clock = SimulatedClock(self.loop, random.Random(f"{seed}/nanos"))
        self.slowness = Slowness(random.Random(f"{seed}/slowness"))
        self.disk = MachineDisk(ROOT, random.Random(f"{seed}/disk"))
        self.disk_good_since = 0.0
        # Of bits that stand nowhere else, so that a commit can be found on the disk by its offset.
        self.history = History(self.loop.time, first_value=0x5A17_C0DE_0000_0000)
        self.ledger = Ledger(self)
        self.inspector = Inspector(self)
        self.lives = 0
        """Counts the processes of nodes, and their ends."""
        self.silent: dict[str, float] = {}
        """Members whose process has ended, and when."""
        self.settings: Settings = self._chosen()
        if self.settings.is_gateway and self.is_alone:
            self.network.greeting = encode_proxy_header(ProxyHeader(None, None))
        self.events: list[str] = []
        self.graves: list[Body] = []
        """Processes that have ended; they are kept, as nothing of them may run again, not even what cleans up."""
        self._setups = random.Random(f"{seed}/setups")
        changes, is_wide, has_marks = (
            self._setups.random() < share for share in (CHANGING_SHARE, WIDE_SHARE, MARKS_SHARE)
        )
        self._changes = changes and not self.settings.is_gateway
        self.is_wide = is_wide
        """Whether there is a topic of many partitions, and who commits to all of them."""
        self.has_marks = has_marks and self.settings.is_gateway
        """Whether a group begins only once the cluster was asked about it."""
        if self.has_marks:
            self.settings = msgspec.structs.replace(self.settings, gateway_adopt="first-use")
        self.late_commits = 0
        self.has_topic = False
        """Whether the topic that all consume was made once: it stays from then on."""
        self.host = self._new_host()
        self.troubles = Troubles(self)
        self._checks = random.Random(f"{seed}/checks")
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._failed_starts = 0
        self._calm_since = inf
        self._closing = self._closed = False

    def _chosen(self) -> Settings:
        return chosen(self.rng)

    def _new_host(self) -> Host | SupervisedHost:
        return Host(self) if self.is_alone else SupervisedHost(self)

    # --- what clients ask ---

    @property
    def is_alone(self) -> bool:
        """Whether there is but one node."""
        return self.settings.workers == 1

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left of any trouble, so that whatever a node reads is carried out."""
        if self.loop.time() < self._calm_since + SETTLED_S:
            return False
        no_fault_waits = all(body.disk.fail_at is None for body in self.host.bodies())
        return self.disk.is_good and no_fault_waits and not self._missing()

    @property
    def nodes(self) -> list[SimulatedNode]:
        """All nodes, those that do not run now as well."""
        return self.host.nodes

    @property
    def moves(self) -> int:
        """Changes whenever a member may have lost its session through no fault of its own."""
        return self.lives

    @property
    def is_loading(self) -> bool:
        """Whether some node loads a partition."""
        return any(node.app is not None and node.app.manager.loading_partitions for node in self.nodes)

    def any_port(self, rng: random.Random) -> int:
        """Where some node listens, or should."""
        return rng.choice(self.nodes).port

    def check_unknown(self, client: str) -> None:
        """A node says that there is no such topic as the one that all consume."""
        if self.has_topic:
            raise Broken("what was answered of topics stays", f"to {client} the topic that stays is unknown")

    def start_client(self, client: Client) -> None:
        """Let a client run beside the others; what it finds broken ends the run."""
        self._spawn(client.run())

    def is_on_disk(self, value: int) -> bool:
        """Whether a commit of this offset is where an acknowledged one must be; true for those not looked for."""
        if self._checks.random() > CHECKED_SHARE:
            return True
        return self.disk.holds(value.to_bytes(8, "big"), after_power_loss=self.settings.log_flush == "always")

    def after_reading(self, end: ClientEnd, turns: int, call: Callable[[], None]) -> None:
        """Call this so many turns of the loop after a node has read all that was sent to it; till then it is slow."""
        self.clock.work_slowly()

        def is_read() -> None:
            self.loop.after_turns(turns, call)
            self.loop.after_turns(turns + SLOW_TURNS, self.clock.work_as_ever)

        end.when_read(is_read)

    # --- what nodes ask ---

    def note(self, what: str) -> None:
        """An event for those who replay the seed."""
        self.events.append(f"{self.loop.time():10.4f} {what}")

    def fail(self, error: BaseException) -> None:
        """Something is broken: the run ends."""
        self._failure = self._failure or error

    def boot(self) -> None:
        """Start what runs on the machine, where nothing does; perhaps with another number of workers."""
        if self._changes and self._setups.random() < CHANGE_SHARE:
            workers = chosen_workers(self._setups)
            if workers != self.settings.workers:
                self.note(f"workers = {workers}")
                self.history.counts["changes of workers"] += 1
                self.settings = msgspec.structs.replace(self.settings, workers=workers)
                self.host = self._new_host()
        self.host.boot()

    def outside(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call soon, on behalf of no node."""
        self.loop.call_soon(call, *arguments, context=OUTSIDE)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call then, on behalf of no node."""
        self.loop.call_later(seconds, call, context=OUTSIDE)

    def crashed(self, body: Body) -> None:
        """A process has ended in the middle of something; perhaps because the power went."""
        # `log.flush = os` promises nothing for a loss of power.
        lost_power = self.settings.log_flush == "always" and self.rng.random() < POWER_SHARE
        self.note(f"{body.name} has crashed{' with the power' if lost_power else ''}")
        self.history.counts["crashes"] += 1
        self.lives += 1
        if lost_power:
            self.host.end_all()
            self.disk.lose_power()
            self.later(self.rng.expovariate(1), self.boot)
        else:
            self.host.ended(body)

    def stopped(self, body: Body) -> None:
        """All of the host has stopped in good order."""
        self.note(f"{body.name} has stopped")
        self.lives += 1
        self.history.counts["stops"] += 1
        if self._closing:
            self._closed = True
            return
        self.later(self.rng.expovariate(1), self.boot)

    def could_not_start(self, error: Exception) -> None:
        """The host gave up starting: it may be the disk's fault, for a while."""
        self._failed_starts += 1
        if isinstance(error, CorruptLog):
            self.fail(Broken("a crash is no damage", str(error)))
        was_good = self.disk.is_good and self.disk_good_since < self.loop.time() - LOAD_S_MAX
        if self._failed_starts > FAILED_STARTS_MAX and was_good:
            self.fail(Broken("calm brings everything back", f"it cannot start: {error}"))

    def started(self) -> None:
        """The host serves, and the topic that stays is there."""
        self._failed_starts = 0
        self.later(HEARD_S, self._topic_is_known)

    def _topic_is_known(self) -> None:
        self.has_topic = True

    def know_alike(self, topic: str) -> bool:
        """Whether every partition is served, by a node to which the topic is what it is to the others' one writer."""
        truth = self.host.catalogue
        if truth is None:
            return False
        served: set[Partition] = set()
        for node in self.nodes:
            app = node.app
            if app is not None and app.server is not None and node.is_up:
                store = app.server.node.catalogue_store
                if store.catalogue.get(topic) == truth.get(topic) and store.is_idle:
                    served.update(app.manager.owned_partitions)
        return len(served) == self.settings.offsets_topic_num_partitions

    def stood_still(self) -> None:
        """The whole machine did."""
        for node in self.nodes:
            node.began()

    # --- the run ---

    def run(self, seconds: float, *, stop: bool = False) -> History:
        """Let so many simulated seconds pass, the last of them in peace; `stop` what runs in good order then.

        Raises Broken, or what else went wrong.
        """
        try:
            with self.loop.watched(lambda: self.fail(Broken("everybody gives way", "something spins"))):
                self.loop.run_until_complete(self._run(seconds, stop=stop))
        finally:
            asyncio.set_event_loop(None)
            self.host.end_all()
        return self.history

    async def _run(self, seconds: float, *, stop: bool) -> None:
        self.host.boot()
        for client in self._clients():
            self.start_client(client)
        self._spawn(self.troubles.run())
        self._spawn(self._watch())
        await self._until(seconds - CALM_S)
        self.troubles.over = True
        self._calm_since = self.loop.time()
        await self._until(seconds)
        if self._failure is None:
            self._check_served()
        if stop and self._failure is None:
            await self._close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def _until(self, second: float) -> None:
        while self.loop.time() < second and self._failure is None:  # noqa: ASYNC110 - its time costs nothing
            await asyncio.sleep(1)

    async def _close(self) -> None:
        self._closing = True
        self.host.stop(self.nodes[0])
        end = self.loop.time() + CALM_S
        while not self._closed and self._failure is None and self.loop.time() < end:  # noqa: ASYNC110 - costs nothing
            await asyncio.sleep(LOOK_S)
        if not self._closed:
            self.fail(Broken("a stop ends", f"not within {CALM_S:.0f} s"))

    def _check_served(self) -> None:
        missing = self._missing()
        if missing:
            raise Broken("calm brings everything back", f"partitions {sorted(missing)} are not served")

    def _missing(self) -> set[int]:
        """The partitions that no node serves."""
        served = {p for node in self.nodes if node.app for p in node.app.manager.owned_partitions}
        return set(range(self.settings.offsets_topic_num_partitions)) - served

    def _clients(self) -> list[Client]:
        clients: list[Client] = [
            Vandal(self, "vandal", "simple-0"),
            Sleeper(self, "sleeper", "rare"),
            Repeater(self, "repeater", "repeated"),
            SideCommitter(self, "side", "aside"),
            TopicKeeper(self, "topics", "topics"),
            GroupDeleter(self, "group-deleter-0", "group-2"),
            GroupDeleter(self, "group-deleter-1", "lonely"),
            Member(self, "loner", "lonely", absent_s=40.0),
            Leaver(self, "leaver", "left"),
        ]
        for number in range(2):
            clients += [Committer(self, f"committer-{number}-{i}", f"simple-{number}") for i in range(2)]
        if self.settings.is_gateway:
            clients += [Adopter(self, "adopter", "moved"), Mover(self, "mover", "moved")]
        if self.is_wide:
            clients += [WideCommitter(self, f"wide-{i}", "wide") for i in range(2)]
        clients += [Deleter(self, f"deleter-{i}", "deleted") for i in range(2)]
        for number, static in ((0, False), (1, True), (2, False)):
            clients += [
                Member(self, f"member-{number}-{i}", f"group-{number}", static=static) for i in range(3)
            ]
        return clients

    async def _watch(self) -> None:
        """Look into the nodes from time to time."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.inspector.look_at_all(self.nodes)
            if self._checks.random() < COMPACT_SHARE:
                self.inspector.compact()
            for node in self.nodes:
                if node.is_up:
                    self.inspector.look(node)
                    chance = self._checks.random()
                    if chance < COMPARE_SHARE:
                        self.inspector.compare(node, again=chance < REPLAY_SHARE)

    def _spawn(self, coroutine: Any) -> None:
        task: asyncio.Task[None] = self.loop.create_task(coroutine, context=OUTSIDE.copy())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def _wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something was raised and not handled."""
        error = context.get("exception")
        if error is not None and not isinstance(error, asyncio.CancelledError | Crash):
            self.fail(error)
