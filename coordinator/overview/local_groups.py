# SPDX-License-Identifier: Apache-2.0
"""Finds one page of the list of groups among those of this node, in slices of time.

The page shows what is in memory: an offset may be shown some milliseconds before its commit is on disk and answered.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from coordinator.node import Partitions
from coordinator.overview.group_list import (
    UNKNOWN_LAG,
    GroupListPage,
    GroupListQuery,
    GroupRow,
    SortKey,
    UnservedPart,
    list_unserved_parts,
    make_page,
)
from coordinator.overview.paging import FirstOf, Position
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from coordinator.runtime.slices import Slices
from protocol.newtypes import Partition

_VALUES: Mapping[SortKey, Callable[[GroupEntry], int | str]] = {
    "group": lambda _: "",
    "state": lambda kept: str(kept.group.state.value),
    "members": lambda kept: kept.group.member_count,
    "offsets": lambda kept: kept.offsets.count,
    "rebalances": lambda kept: kept.rebalances,
}
"""The value of a group in each order, except that by lag."""
LagOf = Callable[[GroupEntry, Slices], Awaitable[int | None]]
"""Returns how far a group is behind the ends of its partitions; None if none of them is known."""


class LocalGroups:
    """The groups of this node."""

    def __init__(
        self,
        node_id: int,
        manager: GroupMetadataManager,
        failed: Mapping[Partition, str],
        find_lags: Callable[[Partitions | None], Awaitable[LagOf]],
    ) -> None:
        """`failed` are the partitions that could not be loaded, with the reason.

        `find_lags` returns the function for the lags of groups that have offsets in some partitions, None for any.
        """
        self._node_id = node_id
        self._manager = manager
        self._failed = failed
        self._find_lags = find_lags

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return the page of this node's groups."""
        lag_of = await self._find_lags(None)
        slices = Slices(self._manager.clock.nanos)
        first: FirstOf[GroupEntry] = FirstOf(query.limit + 1, query.after, descending=query.descending)
        search, total, states = query.search.lower(), 0, Counter[str]()
        for shard in list(self._manager.owned_partitions.values()):
            for kept in list(shard.groups.values()):
                if slices.is_over:
                    await slices.yield_to_event_loop()
                if kept.group.is_dead:
                    continue
                total += 1
                if search and search not in kept.group_id.lower():
                    continue
                state = str(kept.group.state.value)
                states[state] += 1
                if not query.state or query.state == state:
                    first.offer(await _position(kept, query.sort, lag_of, slices), kept)
        rows = [await self._row(kept, lag_of, slices) for kept in first.in_order()]
        return make_page(rows, query, total=total, states=states, missing=self.list_missing_parts())

    async def _row(self, kept: GroupEntry, lag_of: LagOf, slices: Slices) -> GroupRow:
        group = kept.group
        return GroupRow(
            group=kept.group_id,
            state=str(group.state.value),
            type=group.kind,
            protocol_type=group.protocol_type or "",
            members=group.member_count,
            offsets=kept.offsets.count,
            lag=await lag_of(kept, slices),
            rebalances=kept.rebalances,
            node=self._node_id,
        )

    async def find_lag(self, kept: GroupEntry) -> int | None:
        """Return the lag of one group as the list shows it."""
        lag_of = await self._find_lags({topic: list(held) for topic, held in kept.offsets.by_topic.items()})
        return await lag_of(kept, Slices(self._manager.clock.nanos))

    def list_missing_parts(self) -> list[UnservedPart]:
        """Return the partitions that the node is to serve and does not."""
        reasons = {**dict.fromkeys(self._manager.loading_partitions, "loading"), **self._failed}
        return list_unserved_parts(self._node_id, reasons)


async def _position(kept: GroupEntry, sort: SortKey, lag_of: LagOf, slices: Slices) -> Position:
    if sort != "lag":
        return _VALUES[sort](kept), kept.group_id
    lag = await lag_of(kept, slices)
    return UNKNOWN_LAG if lag is None else lag, kept.group_id
