# SPDX-License-Identifier: Apache-2.0
"""Logs that a node nears its limits, before they are reached, and when something is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from coordinator.telemetry.logs import get_logger

log = get_logger("limits")

INTERVAL_MS: Final = 1_000
NEAR_PERCENT: Final = 80
FAR_PERCENT: Final = 70
"""A limit that was near is logged again only after its use was less than this."""


class Limit(msgspec.Struct, frozen=True):
    """A limit on something: `name` is the setting with the maximum, `used` returns how much is in use.

    `used` is None for a limit on each thing of a kind, such as each group: the largest one is not looked up.
    """

    name: str
    maximum: int
    used: Callable[[], int] | None


class LimitWatch:
    """Writes one line to the log when a limit is nearly reached, and one when it first refuses something."""

    def __init__(self, limits: Sequence[Limit], refusals: Mapping[str, int]) -> None:
        self.limits = limits
        self.refusals = refusals
        """How often each limit has refused something, or held it back."""
        self._seen = dict(refusals)
        self._near: set[str] = set()
        self._refusing: set[str] = set()

    def check(self) -> None:
        """Check all limits; to be called every `INTERVAL_MS`."""
        for limit in self.limits:
            used = None if limit.used is None else limit.used()
            self._look_for_refusals(limit, used)
            if used is not None:
                self._look_how_near(limit, used)

    def _look_for_refusals(self, limit: Limit, used: int | None) -> None:
        refused = self.refusals.get(limit.name, 0)
        if refused > self._seen.get(limit.name, 0) and limit.name not in self._refusing:
            self._refusing.add(limit.name)
            log.warning("a limit is reached", limit=limit.name, used=used, maximum=limit.maximum)
        self._seen[limit.name] = refused

    def _look_how_near(self, limit: Limit, used: int) -> None:
        if used * 100 >= limit.maximum * NEAR_PERCENT:
            if limit.name not in self._near:
                self._near.add(limit.name)
                log.warning("a limit is near", limit=limit.name, used=used, maximum=limit.maximum)
        elif used * 100 < limit.maximum * FAR_PERCENT:
            self._near.discard(limit.name)
            self._refusing.discard(limit.name)
