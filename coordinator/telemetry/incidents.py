# SPDX-License-Identifier: Apache-2.0
"""What fails again and again has a line when it begins, one each minute, and one when it is over."""

from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec

from coordinator.telemetry.logs import Logger

REMIND_MS: Final = 60_000


class _Incident(msgspec.Struct):
    began_ms: int
    told_ms: int
    times: int = 1


class Incidents:
    """Things of one part of a node that fail, by any key; `now_ms` is a monotonic clock."""

    def __init__(self, log: Logger, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._open: dict[Hashable, _Incident] = {}

    def begin(self, key: Hashable) -> None:
        """Something fails, and another line has said so."""
        now_ms = self._now_ms()
        self._open.setdefault(key, _Incident(now_ms, now_ms))

    def fails(self, key: Hashable, event: str, **fields: Any) -> None:
        """Something fails, or fails again: log it at error, unless that was done within the last minute."""
        now_ms = self._now_ms()
        incident = self._open.get(key)
        if incident is None:
            self._open[key] = _Incident(now_ms, now_ms)
            self._log.error(event, **fields)
            return
        incident.times += 1
        if now_ms - incident.told_ms >= REMIND_MS:
            incident.told_ms = now_ms
            self._log.error(event, **fields, **_extent(incident, now_ms))

    def is_over(self, key: Hashable, event: str, **fields: Any) -> None:
        """Something succeeds: if it has failed before, log at info how long that took, and how often it failed."""
        incident = self._open.pop(key, None)
        if incident is not None:
            self._log.info(event, **fields, **_extent(incident, self._now_ms()))


def _extent(incident: _Incident, now_ms: int) -> dict[str, Any]:
    return {"seconds": (now_ms - incident.began_ms) // 1_000, "times": incident.times}
