# SPDX-License-Identifier: Apache-2.0
"""The last rebalances of each group, for the overview: bounded soft state, which a restart empties.

Compiled, because every rebalance of a group ends here.
"""

from typing import Final

from coordinator.groups.rebalance_timings import RebalanceTimings
from protocol.newtypes import GroupId

REBALANCES_PER_GROUP: Final = 10
CHARACTERS_MAX: Final = 1_000_000
"""The most characters of all rebalances; beyond that, the groups that have not rebalanced for longest are forgotten."""
CHARACTERS_PER_REBALANCE: Final = 200
"""The characters that a rebalance counts as in addition to its names, which clients choose."""


def count_characters(rebalance: RebalanceTimings) -> int:
    """Return the characters that a rebalance counts as."""
    names = len(rebalance.slowest_member_id) + len(rebalance.slowest_host) + len(rebalance.leader_id)
    return names + CHARACTERS_PER_REBALANCE


class RecentRebalances:
    """The last rebalances of each group on this node."""

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        self._characters_max = characters_max
        self._characters = 0
        self._by_group: dict[GroupId, tuple[RebalanceTimings, ...]] = {}
        """The group whose last rebalance is the oldest comes first."""

    def add(self, group_id: GroupId, rebalance: RebalanceTimings) -> None:
        """Add a rebalance that has ended just now."""
        kept = self._by_group.pop(group_id, ())
        if not kept:
            self._characters += len(group_id)
        elif len(kept) == REBALANCES_PER_GROUP:
            self._characters -= count_characters(kept[0])
            kept = kept[1:]
        self._by_group[group_id] = (*kept, rebalance)
        self._characters += count_characters(rebalance)
        while self._characters > self._characters_max:
            self.forget(next(iter(self._by_group)))

    def forget(self, group_id: GroupId) -> None:
        """Forget the rebalances of a group: it is deleted, or others need the room."""
        kept = self._by_group.pop(group_id, ())
        if kept:
            self._characters -= len(group_id)
        for rebalance in kept:
            self._characters -= count_characters(rebalance)

    def of_group(self, group_id: GroupId) -> list[RebalanceTimings]:
        """Return the last rebalances of a group, the newest first."""
        return list(reversed(self._by_group.get(group_id, ())))
