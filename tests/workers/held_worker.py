# SPDX-License-Identifier: Apache-2.0
"""A process that a supervisor takes for a worker, and whose event loop is held for ever; its node id says in what way.

Started like a worker: `python -m tests.workers.held_worker SOCKET PULSE PARENT NODE`.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final

from coordinator.workers.loop_heartbeat import LoopHeartbeat
from coordinator.workers.process_main import die_with_parent


def compute() -> None:
    """Steps of Python, between which other threads get their turns."""
    while True:
        pass


def compute_in_one_call() -> None:
    """Single calls that hold the interpreter's lock for a second or more: no thread answers meanwhile."""
    while True:
        sum(range(100_000_000))


def deadlock() -> None:
    """Wait for what never comes."""
    threading.Event().wait()


BUSY, BUSY_IN_ONE_CALL, DEADLOCK, IDLE = range(4)
HOLD: Final[Mapping[int, Callable[[], None]]] = {
    BUSY: compute,
    BUSY_IN_ONE_CALL: compute_in_one_call,
    DEADLOCK: deadlock,
}


async def _run(sock: socket.socket, pulse: socket.socket, node_id: int) -> None:
    loop = asyncio.get_running_loop()
    LoopHeartbeat(loop, pulse).start()
    sock.sendall(b"\0")  # any word: the test sees that the process is there
    if node_id in HOLD:
        loop.call_soon(HOLD[node_id])
    await asyncio.Event().wait()


if __name__ == "__main__":
    descriptor, pulse_descriptor, parent, node = map(int, sys.argv[1:])
    die_with_parent(parent)
    asyncio.run(_run(socket.socket(fileno=descriptor), socket.socket(fileno=pulse_descriptor), node))
