# SPDX-License-Identifier: Apache-2.0
"""A node that lives many lives on one disk, its clients, and what goes wrong around them; all out of one seed."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from coordinator.app import App, CannotStart
from coordinator.catalogue.catalogue import Catalogue
from coordinator.config import Address, Settings
from coordinator.config.log_settings import log_settings
from coordinator.groups.outcome import Instant
from coordinator.machine import Machine
from storage.cleaner.work import clean
from storage.disk.properties import load_or_create_meta
from storage.errors import StorageError
from storage.log_manager import LogManager
from tests.simulation.clients import PARTITIONS, TOPIC, Client, Committer, Member, Vandal
from tests.simulation.history import History
from tests.simulation.inspection import check_silent, inspect, replayed_equals_live
from tests.simulation.loop import NS, SimulatedLoop
from tests.simulation.network import ClientEnd, Lost, Network
from tests.storage.faulty import Crash, Fault, FaultyFileSystem

ROOT: Final = Path("/data")
PORT: Final = 9092
WALL_START_MS: Final = 1_700_000_000_000
SETTINGS: Final = Settings(
    listen=Address("127.0.0.1", PORT),
    metrics_listen=None,
    data_dir=ROOT,
    offsets_topic_num_partitions=3,
    offsets_topic_segment_bytes=20_000,
    group_initial_rebalance_delay_ms=500,
    auto_create_topics_enable=False,
    journal_checkpoint_bytes=65_536,
    journal_checkpoint_interval_ms=20_000,
    log_cleaner_backoff_ms=5_000,
    min_cleanable_dirty_ratio=0.2,
    delete_retention_ms=10_000,
    shutdown_timeout_ms=1_000,
)


class SimulatedClock:
    """The loop's time for deadlines; for the wall clock the same, which jumps now and then."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.jumped_ms = 0

    def mono_ms(self) -> int:
        return self._loop.now_ns // 1_000_000

    def wall_ms(self) -> int:
        return WALL_START_MS + self.jumped_ms + self.mono_ms()

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        return self._loop.now_ns


class SimulatedThread:
    """Runs calls one after the other, each after a while, and tells of each after another while."""

    def __init__(self, world: "World", life: int) -> None:
        self._world = world
        self._life = life
        self._calls: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._busy = False

    def submit(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        self._calls.append((call, on_done))
        if not self._busy:
            self._busy = True
            self._world.loop.call_later(self._world.disk_delay_s(), self._run)

    async def run(self, call: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = self._world.loop.create_future()

        def settle(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        self.submit(call, settle)
        result = await future
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Finish what was submitted."""
        while self._calls:
            call, on_done = self._calls.popleft()
            on_done(self._result_of(call))

    def _run(self) -> None:
        if self._world.lives != self._life:
            return
        if not self._calls:  # it was closed meanwhile
            self._busy = False
            return
        call, on_done = self._calls.popleft()
        result = self._result_of(call)
        if self._world.lives == self._life:
            self._world.loop.call_later(self._world.disk_delay_s() / 4, self._done, on_done, result)

    def _result_of(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Crash:
            self._world.crash()
            return None
        except Exception as error:  # noqa: BLE001 - as the real thread does
            return error

    def _done(self, on_done: Callable[[Any], None], result: Any) -> None:
        if self._world.lives != self._life:
            return
        if self._calls:
            self._world.loop.call_later(self._world.disk_delay_s(), self._run)
        else:
            self._busy = False
        on_done(result)


class World:
    """Everything. `run(seconds)` raises what was broken."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"{seed}/world")
        self.loop = SimulatedLoop()
        self.loop.set_exception_handler(self._wrong)
        self.network = self.loop.network = Network(self.loop, seed)
        self.clock = SimulatedClock(self.loop)
        self.fs = FaultyFileSystem(ROOT, random.Random(f"{seed}/disk"))
        self.history = History(self.loop.time)
        self.lives = 0
        """Counts the starts of the node, and its ends."""
        self.silent: dict[str, float] = {}
        """Members whose process has ended, and when."""
        self.served_since = 0.0
        """From when on the node has run, and all its partitions were loaded, without a stop or a jump of time."""
        self.app: App | None = None
        self.settings = msgspec.structs.replace(
            SETTINGS, log_flush=self.rng.choice(["always", "always", "os"])
        )
        self.events: list[str] = []
        self.late_commits = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._slow = 1.0
        self._restarting: asyncio.Task[None] | None = None

    # --- what clients and threads ask ---

    def connect(self) -> ClientEnd:
        """A connection to the node. Raises Lost."""
        return self.network.connect(PORT)

    def start_client(self, client: Client) -> None:
        """Let a client run beside the others; what it finds broken ends the run."""
        task = self.loop.create_task(client.run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    def disk_delay_s(self) -> float:
        """How long a call to the disk takes."""
        return self.rng.expovariate(1_000) * self._slow

    def note(self, what: str) -> None:
        """An event for whoever replays the seed."""
        self.events.append(f"{self.loop.time():10.4f} {what}")

    # --- the node ---

    async def start(self) -> None:
        """Start the node, again and again where its disk does not let it."""
        while True:
            self.lives += 1
            life = self.lives
            try:
                self.app = self._new_app(life)
                await self.app.start()
                await self._topic(self.app)
            except Crash:
                self.crash()
                return
            except (CannotStart, StorageError) as error:
                self.note(f"cannot start: {error}")
                self._forget_app()
                self.fs.restart(power_loss=False)
                await asyncio.sleep(0.5)
            else:
                self.note(f"life {life} serves")
                self.served_since = self.loop.time()
                return

    def _new_app(self, life: int) -> App:
        settings, fs = self.settings, self.fs
        machine = Machine(
            fs,
            self.clock,
            random.Random(f"{self.seed}/ids/{life}").randbytes,
            lambda _loop, _name: SimulatedThread(self, life),
            self.network.bind,
            lambda job: clean(fs, job),
        )
        small = msgspec.structs.replace(log_settings(settings), journal_step_bytes=16_384)
        log = LogManager.open(ROOT, small, fs)
        meta = load_or_create_meta(fs, ROOT, node_id=settings.node_id, cluster_id="c2ltdWxhdGVkLW5vZGUxMjM")
        return App(settings, self.loop, machine, log, meta.cluster_id)

    async def _topic(self, app: App) -> None:
        assert app.server is not None
        store = app.server.node.catalogue_store
        if TOPIC in store.catalogue:
            return
        done: asyncio.Future[Any] = self.loop.create_future()

        def create(draft: Catalogue) -> None:
            draft.create(TOPIC, PARTITIONS, topic_id=store.new_topic_id())

        store.change(create, done.set_result)
        result = await done
        if isinstance(result, BaseException):
            raise result

    def crash(self) -> None:
        """The node ends here, in the middle of whatever it does; it starts again after a while."""
        starting = self._restarting
        if starting is not None and not starting.done() and asyncio.current_task() is not starting:
            starting.cancel()
        # `log.flush = os` promises nothing for a loss of power.
        lost_power = self.settings.log_flush == "always" and self.rng.random() < 0.5
        self.note(f"crash{' with loss of power' if lost_power else ''}")
        self.history.counts["crashes"] += 1
        self.lives += 1
        self._forget_app()
        self.fs.restart(power_loss=lost_power)
        self._restarting = self.loop.create_task(self._start_later())

    async def _start_later(self) -> None:
        await asyncio.sleep(self.rng.expovariate(1))
        await self.start()

    def _forget_app(self) -> None:
        self.network.cut_all(PORT)
        app, self.app = self.app, None
        if app is not None:
            app.scheduler.close()
            app.loop_watch.close()
            app.timers.close()
            for task in app.tasks:
                task.cancel()
            self.loop.create_task(app.leadership.close())

    # --- what goes wrong ---

    async def _trouble(self) -> None:
        """One trouble after the other."""
        troubles: list[Callable[[], Any]] = [
            self._crash_now,
            self._crash_in_an_operation,
            self._fail_an_operation,
            self._fail_an_operation,
            self._slow_disk,
            self._stop_cleanly,
            self._hold,
            self._jump,
            self._lose_partition,
        ]
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / 12))
            if self.app is not None and self.app.serving is not None:
                await self.rng.choice(troubles)()

    async def _crash_now(self) -> None:
        self.crash()

    async def _crash_in_an_operation(self) -> None:
        after = self.rng.randrange(60)
        self.note(f"will crash in operation {after}")
        self.fs.fail(Fault.CRASH, after)

    async def _fail_an_operation(self) -> None:
        fault = self.rng.choice([Fault.FULL, Fault.IO_ERROR])
        after = self.rng.randrange(60)
        self.note(f"will fail with {fault.name} in operation {after}")
        self.fs.fail(fault, after)

    async def _slow_disk(self) -> None:
        self.note("the disk is slow")
        self._slow = 200.0
        await asyncio.sleep(3)
        self._slow = 1.0

    async def _stop_cleanly(self) -> None:
        app = self.app
        assert app is not None
        self.note("stop")
        life = self.lives
        try:
            await app.stop()
        except Crash:
            self.crash()
            return
        if life == self.lives:  # it did not crash meanwhile
            self.lives += 1
            self._forget_app()
            self.fs.restart(power_loss=False)
            self.note("stopped")
            self._restarting = self.loop.create_task(self._start_later())

    async def _hold(self) -> None:
        duration = self.rng.choice([0.5, 3.0, 20.0])
        self.note(f"nothing runs for {duration} s")
        self.loop.hold(int(duration * NS))
        self.served_since = self.loop.time()

    async def _jump(self) -> None:
        jump_ms = self.rng.choice([-3_600_000, -5_000, 5_000, 3_600_000])
        self.note(f"the wall clock jumps by {jump_ms} ms")
        self.clock.jumped_ms += jump_ms

    async def _lose_partition(self) -> None:
        app = self.app
        assert app is not None
        partition = self.rng.randrange(self.settings.offsets_topic_num_partitions)
        self._slow = 100.0
        await asyncio.sleep(0.5)  # so that something is under way
        self._slow = 1.0
        if self.app is app and partition in app.manager.owned_partitions:
            self.note(f"partition {partition} is led anew")
            self.served_since = self.loop.time()
            app.leadership.become_leader(partition, app.leadership.epochs[partition] + 1)

    # --- the run ---

    def run(self, seconds: float) -> History:
        """Let so many simulated seconds pass. Raises Broken, or whatever else went wrong."""
        try:
            self.loop.run_until_complete(self._run(seconds))
        finally:
            asyncio.set_event_loop(None)
        return self.history

    async def _run(self, seconds: float) -> None:
        await self.start()
        for client in self._clients():
            self.start_client(client)
        for job in (self._trouble(), self._watch()):
            task = self.loop.create_task(job)
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        end = self.loop.time() + seconds
        while self.loop.time() < end and self._failure is None:  # noqa: ASYNC110 - its time costs nothing
            await asyncio.sleep(1)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    def _clients(self) -> list[Client]:
        clients: list[Client] = [Vandal(self, "vandal")]
        for number in range(2):
            clients += [Committer(self, f"committer-{number}-{i}", f"standalone-{number}") for i in range(2)]
        clients += [Committer(self, f"deleter-{i}", "deleted", deletes=True) for i in range(2)]
        for number, static in ((0, False), (1, True), (2, False)):
            clients += [
                Member(self, f"member-{number}-{i}", f"group-{number}", static=static) for i in range(3)
            ]
        return clients

    async def _watch(self) -> None:
        """Look into the node from time to time."""
        since: dict[str, float] = {}
        while True:
            await asyncio.sleep(0.5)
            if self.app is not None and self.app.serving is not None:
                if self.app.manager.loading_partitions:
                    self.served_since = self.loop.time()
                inspect(self.app, since, self.served_since, self.loop.time())
                check_silent(self.app, self.silent, self.served_since, self.loop.time())
                if self.rng.random() < 0.05:
                    self._replay(self.app)

    def _replay(self, app: App) -> None:
        try:
            replayed_equals_live(app)
        except Crash:
            self.crash()

    def _wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something was raised where nobody takes it."""
        error = context.get("exception")
        if isinstance(error, Crash):
            if self.fs.crashed:
                self.crash()
            return  # else of a life that is over
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._failure = self._failure or error


__all__ = ["Lost", "World"]
