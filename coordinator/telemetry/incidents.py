# SPDX-License-Identifier: Apache-2.0
"""Logs repeated failures: one line when they begin, one each minute, and one when they are over."""

from collections.abc import Callable, Hashable
from typing import Final, Literal

import msgspec

from coordinator.telemetry.logs import Logger

REMIND_MS: Final = 60_000
OPEN_MAX: Final = 10_000
"""The number of incidents that are kept; if more begin, the oldest are forgotten, and count as new."""


class _Incident(msgspec.Struct):
    began_ms: int
    logged_ms: int
    times: int = 1


class Incidents:
    """The failures in one part of a node, by any key; `now_ms` is a monotonic clock."""

    def __init__(
        self, log: Logger, now_ms: Callable[[], int], level: Literal["warning", "error"] = "error"
    ) -> None:
        """`level` is the level of the lines about failures."""
        self._log = log
        self._level = level
        self._now_ms = now_ms
        self._open: dict[int, _Incident] = {}
        """By the hash of the key: names in keys may be long, and there are many of them under attack."""

    def begin_without_logging(self, key: Hashable) -> None:
        """Begin an incident that another line has reported."""
        if hash(key) not in self._open:
            self._opened(key, self._now_ms())

    def log_repeated_failure(self, key: Hashable, event: str, **fields: object) -> None:
        """Log a failure, unless a failure of the same key was logged within the last minute."""
        now_ms = self._now_ms()
        incident = self._open.get(hash(key))
        if incident is None:
            self._opened(key, now_ms)
            self._write(event, **fields)
            return
        incident.times += 1
        if now_ms - incident.logged_ms >= REMIND_MS:
            incident.logged_ms = now_ms
            self._write(event, **fields, **_extent(incident, now_ms))

    def end_incident(self, key: Hashable, event: str, **fields: object) -> None:
        """End an incident, if the key has one: log at info how long it lasted, and how often the key failed."""
        incident = self._open.pop(hash(key), None)
        if incident is not None:
            self._log.info(event, **fields, **_extent(incident, self._now_ms()))

    def _opened(self, key: Hashable, now_ms: int) -> None:
        if len(self._open) >= OPEN_MAX:
            del self._open[next(iter(self._open))]
        self._open[hash(key)] = _Incident(now_ms, now_ms)

    def _write(self, event: str, **fields: object) -> None:
        write = self._log.warning if self._level == "warning" else self._log.error
        write(event, **fields)


def _extent(incident: _Incident, now_ms: int) -> dict[str, object]:
    return {"seconds": (now_ms - incident.began_ms) // 1_000, "times": incident.times}
