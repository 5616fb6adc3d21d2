# SPDX-License-Identifier: Apache-2.0
"""The supervisor's handle on one worker: its process, which is started only once, and the channel to it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar, cast

import msgspec

from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.workers.channel import Channel
from coordinator.workers.liveness import Liveness, LivenessVerdict
from coordinator.workers.messages import FromWorker
from coordinator.workers.process_launcher import ANSWER, PING, Launcher, Process

Received = TypeVar("Received")

log = get_logger("supervisor")

READ_WITHIN_S: Final = 1.0
"""The seconds to read an ended process's socket: ample, unless another process has inherited the socket."""
STARTS_WITHIN_S: Final = 60.0
"""The seconds that a worker may import modules without answering a ping."""
ENDS_WITHIN_S: Final = 5.0
"""The seconds that a worker may run on without its socket: on a busy machine Python needs a second or more to end."""


class WorkerProcess(Generic[Received]):
    """A worker of `node_id`. Callbacks run on the event loop; `on_exit` is the last one, and always runs.

    Gateways are handled the same way: `kind` is the type of the messages that they send, and `named` is the field of
    log lines that has their number.
    """

    def __init__(
        self,
        node_id: int,
        liveness: Liveness,
        on_message: Callable[[Received], None],
        on_exit: Callable[[int], None],
        *,
        kind: object = FromWorker,
        named: str = "node",
    ) -> None:
        self._named = named
        self.set_node_id(node_id)
        self.serves = False
        """Set by the owner once the worker reports that it serves: from then on it must answer pings."""
        self._on_exit = on_exit
        self._liveness = liveness
        self._start_until_s = 0.0
        self._process: Process | None = None
        self._ended = False
        self.end: asyncio.Task[None]
        """A task, from `start` on, that ends once the process has ended and `on_exit` was called."""
        self._read_all = asyncio.Event()
        self.channel: Channel[Received] = Channel(kind, on_message, self._lost)
        self._pulse = WorkerPinger(liveness)

    def set_node_id(self, node_id: int) -> None:
        """Set the number of the node, or gateway, that the process serves from now on."""
        self.node_id = node_id
        self._log = log.bind(**{self._named: node_id})

    @property
    def pid(self) -> int:
        """The operating system's id of the process."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def has_ever_answered_ping(self) -> bool:
        """True if the process has answered a ping since it was started."""
        return self._liveness.has_ever_answered

    async def start(self, launch: Launcher, tasks: Tasks) -> None:
        """Start the process; `tasks` are the supervisor's. Raises OSError."""
        self._process = await launch(self.node_id, self.channel, self._pulse)
        loop = asyncio.get_running_loop()
        self._start_until_s = loop.time() + STARTS_WITHIN_S
        self.end = tasks.start(self._wait(self._process), "wait for the end of a process")

    async def _wait(self, process: Process) -> None:
        status = await process.wait()
        self._ended = True
        # Its messages are read to the end: what it has sent counts, and what it has not sent did not happen.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._read_all.wait(), READ_WITHIN_S)
        self.channel.close()
        self._pulse.close()
        self._on_exit(status)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; it is lost if the worker is gone."""
        self.channel.send(message)

    def ping_or_kill(self) -> None:
        """Send a ping, and kill the process if it is dead or stuck by the rule of `liveness.py`."""
        assert self._process is not None, "not started"
        if self.serves or asyncio.get_running_loop().time() > self._start_until_s:
            self._judge(self._liveness.count_ping_and_judge(self._process.read_system_state()))
        self._pulse.ping()

    def _judge(self, verdict: LivenessVerdict) -> None:
        match verdict:
            case LivenessVerdict.DEAD | LivenessVerdict.STUCK:
                self.kill(verdict.value)
            case LivenessVerdict.SLOW | LivenessVerdict.RECOVERED:
                seconds = self._liveness.slow_ms / 1000
                self._log.warning("a worker is slow", reason=verdict.value, seconds=seconds)
            case LivenessVerdict.FINE:
                pass

    def kill(self, reason: str) -> None:
        """Kill the process at once, even if it is stopped; `on_exit` follows once it is gone."""
        assert self._process is not None, "not started"
        if not self._ended:
            self._log.warning("killing a worker", pid=self.pid, reason=reason)
            self._process.kill()

    def _lost(self, reason: str) -> None:
        self._read_all.set()
        if not self._ended:
            # It ends by itself without its supervisor's socket; but it must not take long.
            self._log.debug("lost the connection to a worker", reason=reason)
            asyncio.get_running_loop().call_later(ENDS_WITHIN_S, self.kill, "it closed its connection")


class WorkerPinger(asyncio.Protocol):
    """The supervisor's end of the socket on which a worker's thread answers pings."""

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass the newest whole answer to the `Liveness`."""
        self._buffer += data
        whole = len(self._buffer) // ANSWER.size * ANSWER.size
        if whole:
            self._liveness.record_answer(*ANSWER.unpack_from(self._buffer, whole - ANSWER.size))
            self._buffer = self._buffer[whole:]

    def ping(self) -> None:
        """Send a ping, unless earlier pings still wait to be read."""
        if self._transport is not None and not self._transport.get_write_buffer_size():
            self._transport.write(PING)

    def close(self) -> None:
        """Close the transport of the socket."""
        if self._transport is not None:
            self._transport.close()
