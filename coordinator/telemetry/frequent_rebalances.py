# SPDX-License-Identifier: Apache-2.0
"""Which groups rebalance again and again, counted in periods of time.

Compiled, because every rebalance of a group begins here.
"""

from typing import Final

from protocol.newtypes import GroupId

PERIOD_MS: Final = 300_000
OFTEN: Final = 5
"""The rebalances of a group in one period from which on it rebalances often."""
DICTS: Final = 64


def _empty_counts() -> list[dict[GroupId, int]]:
    return [{} for _ in range(DICTS)]


class FrequentRebalances:
    """The groups that rebalanced often in the current period or in the one before it."""

    def __init__(self, period_ms: int = PERIOD_MS) -> None:
        self.period_ms = period_ms
        self._began_ms = 0
        self._counts = _empty_counts()
        """The rebalances of each group in the current period; one dict would move 500,000 groups as it grows."""
        self._often: set[GroupId] = set()
        self._often_before: set[GroupId] = set()

    def add(self, group_id: GroupId, now_ms: int) -> None:
        """Count a rebalance that begins at `now_ms`, in milliseconds of a clock that only goes forward."""
        self._begin_period(now_ms)
        counts = self._counts[hash(group_id) % DICTS]
        count = counts.get(group_id, 0) + 1
        counts[group_id] = count
        if count == OFTEN:
            self._often.add(group_id)

    def count_groups(self, now_ms: int) -> int:
        """Return how many groups rebalance often at `now_ms`."""
        self._begin_period(now_ms)
        return len(self._often | self._often_before)

    def _begin_period(self, now_ms: int) -> None:
        elapsed_ms = now_ms - self._began_ms
        if elapsed_ms < self.period_ms:
            return
        self._often_before = self._often if elapsed_ms < 2 * self.period_ms else set()
        self._often = set()
        self._counts = _empty_counts()
        self._began_ms = now_ms
