# SPDX-License-Identifier: Apache-2.0
"""Answers the supervisor's pings from a thread of the worker's own; the rule is in `liveness.py`."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from coordinator.workers.process_launcher import ANSWER

BEAT_S: Final = 0.05
"""The seconds between the counted turns of the loop; well below the least `worker.timeout.ms`."""


class LoopHeartbeat:
    """Counts the turns of the event loop, and answers pings on `sock` until that is closed.

    `on_stall` is called on the loop if a turn came more than `stall_ms` after the last one
    (`set_stall_ended_callback`).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._sock = sock
        self._turns = 0
        self._last_s = loop.time()
        self._stall_s = float("inf")
        self._on_stall: Callable[[], None] = lambda: None
        self._loop_cpu_ns = make_cpu_clock(threading.current_thread())

    def start(self) -> None:
        """Begin to count turns of the loop and to answer pings."""
        self._beat()
        threading.Thread(target=self._answer, name="groupkeeper-pulse", daemon=True).start()

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """Call `on_stall` from now on whenever the loop was held for longer than `stall_ms`."""
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


def make_cpu_clock(thread: threading.Thread) -> Callable[[], int]:
    """Return a clock of a thread's processor time in ns, or of the process's if threads have no such clock."""
    clock_id_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_id_of is None:  # macOS
        return time.process_time_ns
    clock_id = clock_id_of(thread.ident)
    return lambda: time.clock_gettime_ns(clock_id)
