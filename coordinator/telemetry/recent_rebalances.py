# SPDX-License-Identifier: Apache-2.0
"""The last rebalances of each group, for the overview: bounded soft state, which a restart empties."""

from collections import OrderedDict, deque
from typing import Final

import msgspec

from coordinator.groups.rebalance_timings import RebalanceTimings
from protocol.newtypes import GroupId

REBALANCES_PER_GROUP: Final = 10
CHARACTERS_MAX: Final = 4_000_000
"""The most characters of all rebalances; beyond that, the groups that have not rebalanced for longest are forgotten."""
CHARACTERS_PER_REBALANCE: Final = 200
"""The characters that a rebalance counts as in addition to its names, which clients choose."""


class EndedRebalance(msgspec.Struct, frozen=True):
    """A rebalance that is over. `began_ms` is in Unix milliseconds, the other times are in milliseconds.

    `slowest_member` is the one that the group waited for longest, `slowest_member_ms` for how long it waited for this
    one alone. The generation is the new one; a group that became empty has no leader.
    """

    began_ms: int
    duration_ms: int
    cause: str
    generation: int
    members: int
    slowest_member: str
    slowest_member_host: str
    slowest_member_ms: int
    leader: str
    assignment_ms: int

    @property
    def characters(self) -> int:
        """The characters that it counts as."""
        names = len(self.slowest_member) + len(self.slowest_member_host) + len(self.leader)
        return names + CHARACTERS_PER_REBALANCE


def describe_ended_rebalance(
    timings: RebalanceTimings, *, generation: int, members: int, now_ms: int
) -> EndedRebalance:
    """Return the description of a rebalance that has ended at `now_ms`, in Unix milliseconds."""
    return EndedRebalance(
        began_ms=now_ms - timings.total_duration_ms,
        duration_ms=timings.total_duration_ms,
        cause=timings.cause.value,
        generation=generation,
        members=members,
        slowest_member=timings.slowest_member_id,
        slowest_member_host=timings.slowest_host,
        slowest_member_ms=timings.slowest_join_ms,
        leader=timings.leader_id,
        assignment_ms=timings.assignment_ms,
    )


class RecentRebalances:
    """The last rebalances of each group on this node."""

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        self._characters_max = characters_max
        self._characters = 0
        self._by_group: OrderedDict[GroupId, deque[EndedRebalance]] = OrderedDict()
        """The group whose last rebalance is the oldest comes first."""

    def add(self, group_id: GroupId, rebalance: EndedRebalance) -> None:
        """Add a rebalance that has ended just now."""
        kept = self._by_group.get(group_id)
        if kept is None:
            kept = self._by_group[group_id] = deque()
            self._characters += len(group_id)
        else:
            self._by_group.move_to_end(group_id)
        kept.append(rebalance)
        self._characters += rebalance.characters
        if len(kept) > REBALANCES_PER_GROUP:
            self._characters -= kept.popleft().characters
        while self._characters > self._characters_max:
            self._forget_oldest_group()

    def _forget_oldest_group(self) -> None:
        group_id, forgotten = self._by_group.popitem(last=False)
        self._characters -= len(group_id) + sum(each.characters for each in forgotten)

    def of_group(self, group_id: GroupId) -> list[EndedRebalance]:
        """Return the last rebalances of a group, the newest first."""
        return list(reversed(self._by_group.get(group_id, ())))
