# SPDX-License-Identifier: Apache-2.0
"""Decides whether a worker is dead, stuck or only slow: the supervisor's rule, without I/O.

A worker answers pings from a thread of its own (`loop_heartbeat.py`), so an event loop that is busy with one large
request delays no answer. Each answer reports how often the loop has come round and how much processor time its thread
has used.

- **Dead** is a process that has ended or closed its socket (`worker_process.py` sees both), and one that answers
  nothing for `worker.timeout.ms` and does nothing either: stopped (SIGSTOP, a debugger), or without any processor time
  in all that time. One that is silent and computes is holding the interpreter's lock in a single long call. If the
  system does not report which it is (macOS), the silence has to last `SILENCE_UNEXPLAINED` times as long.
- **Slow** is a worker that answers while its loop has not come round for `worker.timeout.ms`. That is logged once, and
  once more when it is over; the worker counts it, too (`groupkeeper_loop_stalls_total`). It is never killed for that.
- **Stuck** is a loop that has not come round for `worker.stuck.timeout.ms` and has used next to no processor time
  meanwhile: a deadlock, which no waiting ends. Only in this case a worker that answers is killed.

Everything is counted in pings, not in time: a supervisor that was stopped itself must not find every worker late.
"""

import enum
from collections import deque
from typing import Final, NamedTuple

PINGS_PER_TIMEOUT: Final = 5
"""The number of pings that are sent in `worker.timeout.ms`."""
SILENCE_UNEXPLAINED: Final = 4
BUSY_SHARE_MIN: Final = 0.01
"""A loop that has used less than this share of the time is waiting for something, not working."""
STOPPED_STATES: Final = frozenset("TtZX")
RUNNABLE: Final = "R"


class OsProcessSnapshot(NamedTuple):
    """A process as the system reports it: the state as in /proc, and the processor time of all threads."""

    state: str
    cpu_ticks: int


class LivenessVerdict(enum.Enum):
    """The result of a ping; SLOW and RECOVERED are reported once for each slow spell."""

    FINE = "fine"
    SLOW = "its event loop has not come round"
    RECOVERED = "its event loop comes round again"
    DEAD = "it does not answer"
    STUCK = "its event loop is stuck"


class Liveness:
    """The signs of life of one worker; the owner calls `count_ping_and_judge` for each ping, every `interval_ms`."""

    def __init__(self, timeout_ms: int, stuck_timeout_ms: int) -> None:
        self.interval_ms = timeout_ms / PINGS_PER_TIMEOUT
        self._stuck_pings = max(stuck_timeout_ms, timeout_ms) / self.interval_ms
        self._silent = 0  # pings since the last answer
        self._still = 0  # pings since the loop was last known to have come round
        self._turns = -1
        self._cpu_ns = 0
        self._cpu_ns_at_turn = 0
        self._is_slow = False
        self.slow_ms = 0.0
        """The length of the newest slow spell in ms; the spell may still last."""
        self._seen: deque[OsProcessSnapshot | None] = deque(maxlen=PINGS_PER_TIMEOUT + 1)

    @property
    def has_ever_answered(self) -> bool:
        """True if the worker has answered any ping."""
        return self._turns >= 0

    def record_answer(self, turns: int, loop_cpu_ns: int) -> None:
        """Take an answer of the worker's thread: the turns of the loop, and its processor time in ns."""
        self._silent = 0
        self._cpu_ns = loop_cpu_ns
        if turns != self._turns:
            self._turns = turns
            self._still = 0
            self._cpu_ns_at_turn = loop_cpu_ns

    def count_ping_and_judge(self, facts: OsProcessSnapshot | None) -> LivenessVerdict:
        """Count one more ping, and return the verdict; `facts` are of this moment, None if the system reports none."""
        self._silent += 1
        self._still += 1
        self._seen.append(facts)
        if self._is_dead():
            return LivenessVerdict.DEAD
        if self._is_stuck():
            return LivenessVerdict.STUCK
        was_slow, self._is_slow = self._is_slow, self._still > PINGS_PER_TIMEOUT
        if self._is_slow:
            self.slow_ms = self._still * self.interval_ms
        if self._is_slow and not was_slow:
            return LivenessVerdict.SLOW
        return LivenessVerdict.RECOVERED if was_slow and not self._is_slow else LivenessVerdict.FINE

    def _is_dead(self) -> bool:
        if self._silent <= PINGS_PER_TIMEOUT:
            return False
        first, last = self._seen[0], self._seen[-1]
        if first is None or last is None:
            return self._silent > PINGS_PER_TIMEOUT * SILENCE_UNEXPLAINED
        if last.state in STOPPED_STATES:
            return True
        return last.state != RUNNABLE and last.cpu_ticks == first.cpu_ticks

    def _is_stuck(self) -> bool:
        if self._silent > 1 or self._still <= self._stuck_pings:
            return False  # a silent worker may be working: its last answer does not show that
        used_ms = (self._cpu_ns - self._cpu_ns_at_turn) / 1e6
        return used_ms < self._still * self.interval_ms * BUSY_SHARE_MIN
