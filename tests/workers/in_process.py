# SPDX-License-Identifier: Apache-2.0
"""A supervisor and its workers in one process, on whatever event loop, disk and network they are given.

`InProcess` is a launcher whose workers are objects on the loop that also runs the supervisor, with channels in memory.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from coordinator.config import Settings
from coordinator.host_resources import HostResources
from coordinator.workers.liveness import OsProcessSnapshot
from coordinator.workers.process_launcher import ANSWER
from coordinator.workers.worker import Worker

KILLED = -9


class Line(asyncio.Transport):
    """One end of a line in memory; what is written arrives in a later turn of the loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self.other: Line
        self._is_open = True
        self._held: list[bytes] | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_open:
            self._loop.call_soon(self.other.arrived, bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return not self._is_open

    def arrived(self, data: bytes) -> None:
        if self._held is not None:
            self._held.append(data)
        elif self._is_open:
            self._protocol.data_received(data)

    def hold(self) -> None:
        """From now on what arrives is not read before `release`."""
        self._held = []

    def release(self) -> None:
        """Read what has arrived since `hold`."""
        assert self._held is not None, "not held"
        held, self._held = self._held, None
        for data in held:
            self.arrived(data)

    def close(self) -> None:
        """Both ends hear that it is over, once what was written before has arrived."""
        for end in (self, self.other):
            self._loop.call_soon(end.lost)

    def lost(self) -> None:
        if self._is_open:
            self._is_open = False
            self._protocol.connection_lost(None)

    def fall_silent(self) -> None:
        """From now on nothing is heard here, not even the end."""
        self._is_open = False


def connect(
    loop: asyncio.AbstractEventLoop, one: asyncio.Protocol, another: asyncio.Protocol
) -> tuple[Line, Line]:
    """Connect two protocols; returns their ends."""
    ends = Line(loop, one), Line(loop, another)
    ends[0].other, ends[1].other = ends[1], ends[0]
    one.connection_made(ends[0])
    another.connection_made(ends[1])
    return ends


class LoopThread:
    """In the place of a thread: its calls run one after the other on the loop, until `dead` is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dead: asyncio.Event) -> None:
        self._loop = loop
        self._dead = dead

    def submit_with_callback(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        self._loop.call_soon(self._run, call, on_done)

    async def run_blocking(self, call: Callable[[], Any]) -> Any:
        done: asyncio.Future[Any] = self._loop.create_future()

        def settle(result: Any) -> None:
            if not done.done():  # else the waiting task was cancelled
                done.set_result(result)

        self.submit_with_callback(call, settle)
        result = await done
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Nothing to wait for: each call is over in its turn."""

    def _run(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        if self._dead.is_set():
            return
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - as the real thread does
            result = error
        self._loop.call_soon(self._done, on_done, result)

    def _done(self, on_done: Callable[[Any], None], result: Any) -> None:
        if not self._dead.is_set():
            on_done(result)


class Pulse(asyncio.Protocol):
    """Answers pings like a worker that is well, unless it is `stopped`."""

    def __init__(self) -> None:
        self.stopped = False
        self._turns = 0
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.stopped:
            assert isinstance(self._transport, asyncio.Transport)
            self._turns += 1
            self._transport.write(ANSWER.pack(self._turns, 0))


class Launched:
    """One worker, and what the supervisor sees of its process; `dead` is set when that ends."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pid: int,
        machine: HostResources,
        dead: asyncio.Event,
        on_killed: Callable[[], None],
    ) -> None:
        self.pid = pid
        self.dead = dead
        self.pulse = Pulse()
        self.lines: list[Line] = []
        self.worker = Worker(loop, machine, self)
        self._on_killed = on_killed
        self._loop = loop
        self._ended: asyncio.Future[int] = loop.create_future()
        self.worker.ended.add_done_callback(lambda ended: self._end(ended.result()))

    # --- as the supervisor sees it ---

    def read_system_state(self) -> OsProcessSnapshot | None:
        return OsProcessSnapshot("T" if self.pulse.stopped else "S", 0)

    def kill(self) -> None:
        """What is under way does not go on, nothing is said any more, and both lines are cut."""
        if self._ended.done():
            return
        if self.worker.node is not None:
            app = self.worker.node.app
            app.scheduler.close()
            app.loop_watch.close()
            app.timers.close()
            app.deadlines.close()
            self._loop.create_task(app.leadership.cancel_all_loads())
        self._end(KILLED)
        self._on_killed()

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def _end(self, status: int) -> None:
        if not self._ended.done():
            self.dead.set()
            for line in self.lines:
                line.fall_silent()
                self._loop.call_soon(line.other.lost)
            self._ended.set_result(status)

    # --- as the worker sees its process ---

    def configure(self, settings: Settings, name: int | str) -> None:
        """Logs are the test's."""

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """Nothing holds a loop whose time stands still meanwhile."""

    def end_orphaned_worker(self, reason: str) -> None:
        self.kill()


class InProcess:
    """A launcher whose workers share the loop.

    `machine_of(node, dead)` gives the machine of one life of a node, whose calls end when `dead` is set.
    `on_killed(node)` is called when one did not end by itself: what the system takes from a process that was killed,
    its sockets above all, is for the test to take.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        machine_of: Callable[[int, asyncio.Event], HostResources],
        on_killed: Callable[[int], None],
    ) -> None:
        self.running: dict[int, Launched] = {}
        """The newest life of each node."""
        self.launches = 0
        self._loop = loop
        self._machine_of = machine_of
        self._on_killed = on_killed
        self._pids = count(100)

    async def __call__(self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol) -> Launched:
        dead = asyncio.Event()
        machine = self._machine_of(node_id, dead)
        launched = Launched(self._loop, next(self._pids), machine, dead, lambda: self._on_killed(node_id))
        for ours, theirs in ((channel, launched.worker.channel), (pulse, launched.pulse)):
            _, end = connect(self._loop, ours, theirs)
            launched.lines.append(end)
        self.running[node_id] = launched
        self.launches += 1
        return launched
