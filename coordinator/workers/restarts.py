# SPDX-License-Identifier: Apache-2.0
"""Decides when a dead worker is started again, and whether its partitions wait for that."""

from collections.abc import Callable
from typing import Final

WITHIN_S: Final = 60.0
"""The seconds after which a death does not count any more."""
PATIENCE: Final = 3
"""The number of deaths after which partitions still wait for their node; after more they go to the others."""
PAUSE_S_MAX: Final = 10.0


class Restarts:
    """The deaths of each node; `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deaths: dict[int, list[float]] = {}
        self._totals: dict[int, int] = {}

    def total_deaths_of_node(self, node: int) -> int:
        """Return the number of deaths of a node."""
        return self._totals.get(node, 0)

    def record_death(self, node: int) -> float | None:
        """Count a death; return the seconds until the next start, None if partitions are not to wait for it."""
        now = self._clock()
        recent = [at for at in self._deaths.get(node, ()) if now - at < WITHIN_S]
        self._deaths[node] = [*recent, now]
        self._totals[node] = self.total_deaths_of_node(node) + 1
        return self.compute_restart_delay_s(node) if len(recent) < PATIENCE else None

    def compute_restart_delay_s(self, node: int) -> float:
        """Return the seconds to wait before the next start: none after one death, then longer after each."""
        deaths = len(self._deaths.get(node, ()))
        return 0.0 if deaths <= 1 else min(0.25 * 2**deaths, PAUSE_S_MAX)
