# SPDX-License-Identifier: Apache-2.0
"""One worker as its supervisor has it: a process and the socket to it. Started once, and gone for good once it ends."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

import coordinator
from coordinator.telemetry.logs import get_logger
from coordinator.workers.liveness import Liveness, ProcessFacts, Verdict
from coordinator.workers.messages import Channel, FromWorker
from coordinator.workers.pulse import ANSWER, PING

log = get_logger("supervisor")

STARTS_WITHIN_S: Final = 60.0
"""For so long a worker may import what it needs and say nothing."""


class WorkerProcess:
    """A worker of `node_id`. Callbacks come on the event loop; `on_exit` is the last one, and always comes."""

    module = "coordinator.workers.worker"
    """What the process runs."""

    def __init__(
        self,
        node_id: int,
        liveness: Liveness,
        on_message: Callable[[Any], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self.node_id = node_id
        self.serves = False
        """To be set once the worker has said so: from then on it must answer."""
        self._on_exit = on_exit
        self._liveness = liveness
        self._start_until_s = 0.0
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: asyncio.Task[None] | None = None
        self.channel = Channel(FromWorker, on_message, self._lost)
        self._pulse = PulseReader(liveness)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def answers(self) -> bool:
        """Whether the process has answered a ping since it was started."""
        return self._liveness.has_answered

    async def start(self, lock_descriptors: Sequence[int]) -> None:
        """Start the process, which inherits the data directory's lock. Raises OSError."""
        ours, theirs = socket.socketpair()
        our_pulse, their_pulse = socket.socketpair()
        with theirs, their_pulse:
            command = [sys.executable, "-m", self.module]
            command += [str(theirs.fileno()), str(their_pulse.fileno()), str(os.getpid()), str(self.node_id)]
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), their_pulse.fileno(), *lock_descriptors),
                # Where its modules are found first, whatever lies in the directory that we were started in.
                cwd=Path(coordinator.__file__).parents[1],
            )
        loop = asyncio.get_running_loop()
        self._start_until_s = loop.time() + STARTS_WITHIN_S
        await loop.create_connection(lambda: self.channel, sock=ours)
        await loop.create_connection(lambda: self._pulse, sock=our_pulse)
        self._waiting = loop.create_task(self._wait())

    async def _wait(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        self.channel.close()
        self._pulse.close()
        self._on_exit(status)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; a worker that is gone does not hear it."""
        self.channel.send(message)

    def ping(self) -> None:
        """Ask whether it is alive, and end it when it is not, by the rule of `liveness.py`."""
        if self.serves or asyncio.get_running_loop().time() > self._start_until_s:
            self._judge(self._liveness.pinged(process_facts(self.pid)))
        self._pulse.ping()

    def _judge(self, verdict: Verdict) -> None:
        match verdict:
            case Verdict.DEAD | Verdict.STUCK:
                self.kill(verdict.value)
            case Verdict.SLOW | Verdict.RECOVERED:
                seconds = self._liveness.slow_ms / 1000
                log.warning("a worker is slow", node=self.node_id, reason=verdict.value, seconds=seconds)
            case Verdict.FINE:
                pass

    def kill(self, reason: str) -> None:
        """SIGKILL, which reaches a stopped process, too; `on_exit` follows once it is gone."""
        assert self._process is not None
        if self._process.returncode is None:
            log.warning("killing a worker", node=self.node_id, pid=self.pid, reason=reason)
            self._process.send_signal(signal.SIGKILL)

    async def gone(self) -> None:
        """Return once the process has ended and `on_exit` was called."""
        if self._waiting is not None:
            await asyncio.shield(self._waiting)

    def _lost(self, reason: str) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            # It ends by itself without its supervisor's socket; but it must not take its time.
            log.debug("lost the connection to a worker", node=self.node_id, reason=reason)
            asyncio.get_running_loop().call_later(1.0, self.kill, "it closed its connection")


class PulseReader(asyncio.Protocol):
    """The supervisor's end of the socket on which a worker's thread answers pings."""

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take the newest whole answer."""
        self._buffer += data
        whole = len(self._buffer) // ANSWER.size * ANSWER.size
        if whole:
            self._liveness.answered(*ANSWER.unpack_from(self._buffer, whole - ANSWER.size))
            self._buffer = self._buffer[whole:]

    def ping(self) -> None:
        """Ask; a worker that does not read has enough questions waiting already."""
        if self._transport is not None and not self._transport.get_write_buffer_size():
            self._transport.write(PING)

    def close(self) -> None:
        """Close the socket."""
        if self._transport is not None:
            self._transport.close()


def process_facts(pid: int) -> ProcessFacts | None:
    """The state and the processor time of a process; None where there is no /proc, or no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return ProcessFacts(fields[0], int(fields[11]) + int(fields[12]))
