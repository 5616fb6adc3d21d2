# SPDX-License-Identifier: Apache-2.0
"""What fails again and again has a line when it begins, one each minute, and one when it is over."""

from collections.abc import Callable, Hashable
from typing import Final, Literal

import msgspec

from coordinator.telemetry.logs import Logger

REMIND_MS: Final = 60_000
OPEN_MAX: Final = 10_000
"""So many incidents are known at a time; of more the oldest are forgotten, and begin anew."""


class _Incident(msgspec.Struct):
    began_ms: int
    told_ms: int
    times: int = 1


class Incidents:
    """Things of one part of a node that fail, by any key; `now_ms` is a monotonic clock."""

    def __init__(
        self, log: Logger, now_ms: Callable[[], int], level: Literal["warning", "error"] = "error"
    ) -> None:
        """`level` is that of the lines on what fails."""
        self._log = log
        self._level = level
        self._now_ms = now_ms
        self._open: dict[int, _Incident] = {}
        """By the hash of the key: names in keys may be long, and there are many of them under attack."""

    def begin(self, key: Hashable) -> None:
        """Something fails, and another line has said so."""
        if hash(key) not in self._open:
            self._opened(key, self._now_ms())

    def fails(self, key: Hashable, event: str, **fields: object) -> None:
        """Something fails, or fails again: log it, unless that was done within the last minute."""
        now_ms = self._now_ms()
        incident = self._open.get(hash(key))
        if incident is None:
            self._opened(key, now_ms)
            self._write(event, **fields)
            return
        incident.times += 1
        if now_ms - incident.told_ms >= REMIND_MS:
            incident.told_ms = now_ms
            self._write(event, **fields, **_extent(incident, now_ms))

    def is_over(self, key: Hashable, event: str, **fields: object) -> None:
        """Something succeeds: if it has failed before, log at info how long that took, and how often it failed."""
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
