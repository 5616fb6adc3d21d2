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
from coordinator.workers.liveness import OsProcessSnapshot

WORKER_MODULE: Final = "coordinator.workers.worker_main"


class SubprocessLauncher:
    """Starts `python -m MODULE SOCKET PULSE PARENT NODE`, which inherits the data directory's lock."""

    def __init__(
        self,
        lock_descriptors: Callable[[], Sequence[int]],
        module: str = WORKER_MODULE,
        environment: Mapping[str, str] = {},
    ) -> None:
        """Give the processes those variables of `environment` that this process does not have."""
        self._lock_descriptors = lock_descriptors
        self._module = module
        self._environment = environment

    async def __call__(
        self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol
    ) -> "LaunchedSubprocess":
        """Start the process of a node, with one socket for `channel` and one for `pulse`. Raises OSError."""
        ours, theirs = socket.socketpair()
        our_pulse, their_pulse = socket.socketpair()
        with theirs, their_pulse:
            command = [sys.executable, "-m", self._module]
            command += [str(theirs.fileno()), str(their_pulse.fileno()), str(os.getpid()), str(node_id)]
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), their_pulse.fileno(), *self._lock_descriptors()),
                # Here `-m` finds our modules first, whatever lies in the supervisor's working directory.
                cwd=Path(coordinator.__file__).parents[1],
                env={**self._environment, **os.environ},
            )
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: channel, sock=ours)
        await loop.create_connection(lambda: pulse, sock=our_pulse)
        return LaunchedSubprocess(process)


class LaunchedSubprocess:
    """A worker or gateway process that was started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The operating system's id of the process."""
        return self._process.pid

    def read_system_state(self) -> OsProcessSnapshot | None:
        """Return the process's state and processor time; None without /proc or once the process is gone."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return OsProcessSnapshot(fields[0], int(fields[11]) + int(fields[12]))

    def kill(self) -> None:
        """Send SIGKILL, which ends a stopped process, too."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return the exit status, negative for a signal, once the process has ended."""
        return await self._process.wait()


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists, of whatever user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
