# SPDX-License-Identifier: Apache-2.0
"""Workers as processes of their own: the launcher of a real supervisor."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import coordinator
from coordinator.workers.liveness import ProcessFacts

WORKER_MODULE: Final = "coordinator.workers.worker_main"


class Subprocesses:
    """Starts `python -m MODULE SOCKET PULSE PARENT NODE`, which inherits the data directory's lock."""

    def __init__(
        self,
        lock_descriptors: Callable[[], Sequence[int]],
        module: str = WORKER_MODULE,
        environment: Mapping[str, str] = {},
    ) -> None:
        """Variables of `environment` are set where this process does not have them."""
        self._lock_descriptors = lock_descriptors
        self._module = module
        self._environment = environment

    async def __call__(
        self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol
    ) -> "WorkerSubprocess":
        """Start the process of a node, with a socket for each of the two. Raises OSError."""
        ours, theirs = socket.socketpair()
        our_pulse, their_pulse = socket.socketpair()
        with theirs, their_pulse:
            command = [sys.executable, "-m", self._module]
            command += [str(theirs.fileno()), str(their_pulse.fileno()), str(os.getpid()), str(node_id)]
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), their_pulse.fileno(), *self._lock_descriptors()),
                # Where its modules are found first, whatever lies in the directory that we were started in.
                cwd=Path(coordinator.__file__).parents[1],
                env={**self._environment, **os.environ},
            )
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: channel, sock=ours)
        await loop.create_connection(lambda: pulse, sock=our_pulse)
        return WorkerSubprocess(process)


class WorkerSubprocess:
    """One process that was started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def facts(self) -> ProcessFacts | None:
        """Its state and its processor time; None where there is no /proc, or no such process."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return ProcessFacts(fields[0], int(fields[11]) + int(fields[12]))

    def kill(self) -> None:
        """SIGKILL, which reaches a stopped process, too."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return its exit status, negative for a signal, once it has ended."""
        return await self._process.wait()


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number, of whatever user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
