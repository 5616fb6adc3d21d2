# SPDX-License-Identifier: Apache-2.0
"""One worker as its supervisor has it: a process and the socket to it. Started once, and gone for good once it ends."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

import coordinator
from coordinator.cluster.messages import Channel, FromWorker, Ping
from coordinator.logs import get_logger

log = get_logger("supervisor")

MISSED_PINGS_MAX: Final = 5
"""So many pings in a row may go without any word from the worker."""
STARTS_WITHIN_S: Final = 60.0
"""For so long a worker may import what it needs and say nothing."""


class WorkerProcess:
    """A worker of `node_id`. Callbacks come on the event loop; `on_exit` is the last one, and always comes."""

    def __init__(
        self, node_id: int, on_message: Callable[[Any], None], on_exit: Callable[[int], None]
    ) -> None:
        self.node_id = node_id
        self.serves = False
        """To be set once the worker has said so: from then on it must answer."""
        self._on_exit = on_exit
        self._on_message = on_message
        self._missed = 0
        self._start_until_s = 0.0
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._channel = Channel(FromWorker, self._got, self._lost)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    async def start(self, lock_descriptor: int) -> None:
        """Start the process, which inherits the data directory's lock. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "coordinator.cluster.worker"]
            command += [str(theirs.fileno()), str(os.getpid()), str(self.node_id)]
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), lock_descriptor),
                # Where its modules are found first, whatever lies in the directory that we were started in.
                cwd=Path(coordinator.__file__).parents[1],
            )
        loop = asyncio.get_running_loop()
        self._start_until_s = loop.time() + STARTS_WITHIN_S
        await loop.create_connection(lambda: self._channel, sock=ours)
        self._waiting = loop.create_task(self._wait())

    async def _wait(self) -> None:
        assert self._process is not None
        status = await self._process.wait()
        self._channel.close()
        self._on_exit(status)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; a worker that is gone does not hear it."""
        self._channel.send(message)

    def ping(self) -> None:
        """Ask whether it is alive, and end it when it has not answered for too long.

        Counted in pings, not in time: a supervisor that was stopped itself must not find everybody late.
        """
        self._missed += 1
        is_late = self.serves or asyncio.get_running_loop().time() > self._start_until_s
        if self._missed > MISSED_PINGS_MAX and is_late:
            self.kill("it does not answer")
        else:
            self.send(Ping())

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

    def _got(self, message: Any) -> None:
        self._missed = 0
        self._on_message(message)

    def _lost(self, reason: str) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            # It ends by itself without its supervisor's socket; but it must not take its time.
            log.debug("lost the connection to a worker", node=self.node_id, reason=reason)
            asyncio.get_running_loop().call_later(1.0, self.kill, "it closed its connection")
