# SPDX-License-Identifier: Apache-2.0
"""A worker's answers to its supervisor's pings, from a thread of its own: the rule is in `liveness.py`."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from coordinator.workers.launcher import ANSWER

BEAT_S: Final = 0.05
"""How often the loop is asked to come round; well below the least `worker.timeout.ms`."""


class LoopHeartbeat:
    """Counts the turns of the loop that it is made on, and answers pings on `sock` until that is closed.

    `on_stall` is called on the loop when it comes round after more than `stall_ms`, which `watch` sets.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._sock = sock
        self._turns = 0
        self._last_s = loop.time()
        self._stall_s = float("inf")
        self._on_stall: Callable[[], None] = lambda: None
        self._loop_cpu_ns = cpu_clock_of(threading.current_thread())

    def start(self) -> None:
        """Begin to beat and to answer."""
        self._beat()
        threading.Thread(target=self._answer, name="groupkeeper-pulse", daemon=True).start()

    def watch(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """From now on notice when the loop was held for longer than this."""
        self._stall_s, self._on_stall = stall_ms / 1000, on_stall

    def _beat(self) -> None:
        self._turns += 1
        now_s = self._loop.time()
        if now_s - self._last_s > self._stall_s:
            self._on_stall()
        self._last_s = now_s
        self._loop.call_later(BEAT_S, self._beat)

    def _answer(self) -> None:
        try:
            while self._sock.recv(4096):
                self._sock.sendall(ANSWER.pack(self._turns, self._loop_cpu_ns()))
        except OSError:
            return  # the supervisor is gone; the other socket wakes the loop


def cpu_clock_of(thread: threading.Thread) -> Callable[[], int]:
    """The processor time that a thread has used, in ns; that of the process where threads have no such clock."""
    clock_id_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_id_of is None:  # macOS
        return time.process_time_ns
    clock_id = clock_id_of(thread.ident)
    return lambda: time.clock_gettime_ns(clock_id)
