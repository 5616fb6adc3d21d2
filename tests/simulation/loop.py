# SPDX-License-Identifier: Apache-2.0
"""An event loop whose time passes only when nothing is left to do, shared by processes that end and stop apart.

It is asyncio's own, on a selector without sockets. Which process a call belongs to stands in its context, which
asyncio hands on to whatever the call schedules.
"""

import asyncio
import math
import selectors
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVarTuple

if TYPE_CHECKING:
    from tests.simulation.network import Network
    from tests.simulation.sockets import Sockets

NS = 1_000_000_000
TURNS_MAX = 50_000
CONNECT_S = 0.0005
SPIN_S = 5.0
Ts = TypeVarTuple("Ts")


class Endless(RuntimeError):
    """Something goes round and round, and no time passes."""


class Spinning(BaseException):
    """Raised in the middle of what never gives way."""


class Idle(RuntimeError):
    """Nothing will ever happen again."""


class Process:
    """What is scheduled in its context runs while it is alive, and later where it is paused meanwhile."""

    def __init__(self, loop: "SimulatedLoop", name: str) -> None:
        self.name = name
        self.is_alive = True
        self.runs = True
        """Alive, and not paused."""
        self.context = Context()
        self.context.run(PROCESS.set, self)
        self.tasks: set[asyncio.Task[Any]] = set()
        """Kept for as long as the process is: what a killed process left undone is never cleaned up by itself."""
        self.late: list[_Call] = []
        self._loop = loop

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine in this process."""
        return self._loop.create_task(coroutine, context=self.context.copy())

    def pause(self) -> None:
        """Stop, as with SIGSTOP."""
        self.runs = False

    def go_on(self) -> None:
        """Run again, and first what was due meanwhile: timers before what lies in sockets, as libuv has it."""
        self.runs = self.is_alive
        late, self.late = self.late, []
        for call in sorted(late, key=lambda each: each.from_outside):
            self._loop.call_again(call)

    def die(self) -> None:
        """End, as with SIGKILL: nothing of it runs any more, not even what cleans up."""
        self.is_alive = self.runs = False
        self.late.clear()


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)


class _Call:
    """One call of a process."""

    __slots__ = ("args", "callback", "context", "from_outside", "handle", "process")

    def __init__(self, process: Process, callback: Callable[..., Any], args: Any, context: Context) -> None:
        self.process = process
        self.from_outside = PROCESS.get() is not process
        self.callback = callback
        self.args = args
        self.context = context
        self.handle: asyncio.Handle

    def __call__(self) -> None:
        process = self.process
        if process.runs:
            self.callback(*self.args)
        elif process.is_alive:
            process.late.append(self)

    def again(self) -> None:
        """The call was late, and may have been taken back."""
        if not self.handle.cancelled():
            self()


class _NoSockets(selectors.BaseSelector):
    """Waits for nothing; waiting for a time moves the clock there."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.turns = 0
        self._still = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Idle
        if timeout > 0:
            self.now_ns += math.ceil(timeout * NS)
            self._still = 0
        self.turns += 1
        self._still += 1
        if self._still > TURNS_MAX:
            raise Endless(f"{TURNS_MAX} turns, and there is always more to do at {self.now_ns / NS:.4f} s")
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`time()` is simulated; servers are those of a `Network`; executors run at once."""

    def __init__(self) -> None:
        self._ports = _NoSockets()
        self.network: Network | None = None
        self.sockets: Sockets | None = None
        super().__init__(self._ports)

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since the start."""
        return self._ports.now_ns

    @contextmanager
    def watched(self, on_spin: Callable[[], None], spin_s: float = SPIN_S) -> Iterator[None]:
        """Break off what keeps the loop from turning for so much processor time, once `on_spin` was called."""
        seen = -1

        def look(_signal: int, _frame: object) -> None:
            nonlocal seen
            if self._ports.turns == seen:
                on_spin()
                raise Spinning
            seen = self._ports.turns

        before = signal.signal(signal.SIGVTALRM, look)
        signal.setitimer(signal.ITIMER_VIRTUAL, spin_s, spin_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    def hold(self, duration_ns: int) -> None:
        """Let time pass while nothing runs, as when the machine is stopped."""
        self._ports.now_ns += duration_ns

    def time(self) -> float:
        return self._ports.now_ns / NS

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        context = copy_context() if context is None else context
        call = _Call(process, callback, args, context)
        handle = call.handle = super().call_soon(call, context=context)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        context = copy_context() if context is None else context
        call = _Call(process, callback, args, context)
        handle = call.handle = super().call_at(when, call, context=context)
        return handle

    def after_turns(self, count: int, call: Callable[[], None]) -> None:
        """Call this so many turns from now, on behalf of no process."""
        if count:
            self.call_soon(self.after_turns, count - 1, call, context=_NOBODY)
        else:
            call()

    def call_again(self, call: _Call) -> None:
        """Make a call that came while its process was paused."""
        super().call_soon(call.again, context=call.context)

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None
    ) -> "asyncio.Task[Any]":
        task = super().create_task(coro, name=name, context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            process.tasks.add(task)
            task.add_done_callback(process.tasks.discard, context=_NOBODY)
        return task

    async def create_server(self, protocol_factory: Any, *_: Any, sock: Any = None, **__: Any) -> Any:
        assert self.network is not None, "no network"
        return self.network.listen(sock, protocol_factory)

    async def create_unix_server(self, protocol_factory: Any, *_: Any, sock: Any = None, **__: Any) -> Any:
        return await self.create_server(protocol_factory, sock=sock)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        assert self.network is not None, "no network"
        await asyncio.sleep(CONNECT_S)
        protocol = protocol_factory()
        return self.network.dial(port, protocol), protocol

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    async def sock_connect(self, sock: Any, address: Any) -> None:
        await asyncio.sleep(CONNECT_S)
        sock.connect(address if isinstance(address, str) else address[1])

    async def sock_sendall(self, sock: Any, data: Any) -> None:
        assert self.sockets is not None, "no sockets"
        left = memoryview(data)
        while left:
            try:
                left = left[sock.send(left) :]
            except BlockingIOError:
                await self.sockets.until_ready(sock.fileno(), to_write=True)

    async def sock_recv(self, sock: Any, nbytes: int) -> bytes:
        assert self.sockets is not None, "no sockets"
        while True:
            try:
                return bytes(sock.recv(nbytes))
            except BlockingIOError:
                await self.sockets.until_ready(sock.fileno())

    def add_reader(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        assert self.sockets is not None, "no sockets"
        self.sockets.watch(fd, reader=partial(callback, *args))

    def remove_reader(self, fd: Any) -> bool:
        assert self.sockets is not None, "no sockets"
        return self.sockets.unwatch(fd, reader=True)

    def add_writer(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        assert self.sockets is not None, "no sockets"
        self.sockets.watch(fd, writer=partial(callback, *args))

    def remove_writer(self, fd: Any) -> bool:
        assert self.sockets is not None, "no sockets"
        return self.sockets.unwatch(fd, writer=True)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as an executor does
            done.set_exception(error)
        return done


_NOBODY = Context()
"""For calls that belong to no process."""
