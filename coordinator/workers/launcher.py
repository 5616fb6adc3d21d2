# SPDX-License-Identifier: Apache-2.0
"""How a supervisor comes by its workers: a port, so that it does not know whether they are processes.

`subprocesses.py` is the real one. A simulation gives the supervisor a launcher of its own, which makes a
`worker.Worker` in the same process: it connects `channel` to the worker's channel and `pulse` to whatever answers
pings, each by a pair of transports in memory; `kill` forgets the worker in the middle of whatever it does, cuts both
transports, and lets `wait` return. `tests/workers/in_process.py` does that on any event loop.
"""

import asyncio
from struct import Struct
from typing import Final, Protocol

from coordinator.workers.liveness import ProcessFacts

PING: Final = b"?"
"""Goes to a worker over its pulse; any number of them, and any bytes, ask once."""
ANSWER: Final = Struct(">qq")
"""What comes back: how often its event loop has come round, and the nanoseconds of processor time it has used."""


class Process(Protocol):
    """A worker that was launched, from outside."""

    @property
    def pid(self) -> int:
        """A number for operators; no two that run have the same."""

    def facts(self) -> ProcessFacts | None:
        """What its surroundings say of its doings now; None where they say nothing."""

    def kill(self) -> None:
        """End it at once, wherever it is, as SIGKILL does; harmless once it has ended."""

    async def wait(self) -> int:
        """Return its exit status once it has ended: from then on it does nothing any more, for certain."""


class Launcher(Protocol):
    """Starts workers; a function or an object that is called."""

    async def __call__(self, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol) -> Process:
        """Start the worker of a node; both protocols are connected to it on return. Raises OSError.

        Over `channel` go the messages of `messages.py`, the first of which (Welcome) says what the worker is. Over
        `pulse` go PING and ANSWER; a simulated worker answers as `liveness.py` expects of one that is well.
        """
