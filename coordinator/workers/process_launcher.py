# SPDX-License-Identifier: Apache-2.0
"""Starts a supervisor's workers: an interface that hides from the supervisor whether they are processes.

`subprocesses.py` has the real launcher. A simulation gives the supervisor a launcher of its own, which makes a
`worker.Worker` in the same process: it connects `channel` to the worker's channel and `pulse` to whatever answers
pings, each by a pair of transports in memory; `kill` forgets the worker in the middle of whatever it does, cuts both
transports, and lets `wait` return. `tests/workers/in_process.py` does that on any event loop.
"""

import asyncio
from struct import Struct
from typing import Final, Protocol

from coordinator.workers.liveness import OsProcessSnapshot

PING: Final = b"?"
"""The request to a worker over its pulse; any number of pings, and any bytes, count as one request."""
ANSWER: Final = Struct(">qq")
"""The response to a ping: the turns of the event loop, and its processor time in ns."""


class Process(Protocol):
    """A launched worker as its supervisor handles it."""

    @property
    def pid(self) -> int:
        """A number for operators, unique among the running processes."""

    def read_system_state(self) -> OsProcessSnapshot | None:
        """Return the current state that the system reports of the process; None if it reports none."""

    def kill(self) -> None:
        """End the process at once, whatever it does, as SIGKILL would; harmless once it has ended."""

    async def wait(self) -> int:
        """Return the exit status once the process has ended and certainly does nothing any more."""


class Launcher(Protocol):
    """Starts workers; a function or an object that is called."""

    async def __call__(self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol) -> Process:
        """Start the worker of a node; both protocols are connected to it on return. Raises OSError.

        Over `channel` go the messages of `messages.py`, the first of which (WorkerStart) has its settings. Over
        `pulse` go PING and ANSWER; a simulated worker answers as `liveness.py` expects of one that is well.
        """
