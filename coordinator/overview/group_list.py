# SPDX-License-Identifier: Apache-2.0
"""One page of the list of groups: the query, the page, and how the pages of several nodes become one. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

import msgspec

from coordinator.overview.paging import (
    LIMIT_DEFAULT,
    PAGE_CHARACTERS_MAX,
    FirstOf,
    Position,
    check_limit,
    cut_page,
    is_before,
)
from coordinator.topology.view import NO_NODE
from protocol.newtypes import Partition

SortKey = Literal["group", "state", "members", "offsets", "lag", "rebalances"]
ORDERS: Final = get_args(SortKey)

_NUMBER: Final = re.compile(r"(-?[0-9]{1,19}):(.*)", re.DOTALL)
_TEXTS: Final = {
    "group": re.compile(r"():(.*)", re.DOTALL),
    "state": re.compile(r"([A-Za-z]+):(.*)", re.DOTALL),
}
"""The texts of positions in the orders by a text."""
PARTS_MAX: Final = 20
"""The most reasons that are listed of partitions that one node does not serve."""
SEARCH_CHARACTERS_MAX: Final = 1_000
UNKNOWN_LAG: Final = -1
"""The value of a group without a known lag in the order by lag."""


class GroupListQuery(msgspec.Struct, frozen=True, tag=True):
    """Selects the groups of one page: those with `search` in their id, in any case, after the position `after`.

    Raises ValueError for a limit or a search that cannot be.
    """

    search: str = ""
    state: str = ""
    sort: SortKey = "group"
    descending: bool = False
    limit: int = LIMIT_DEFAULT
    after: Position | None = None
    characters_max: int = PAGE_CHARACTERS_MAX
    """A page ends once the names on it have this many characters; no HTTP parameter sets this."""

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        check_limit(self.limit)
        if len(self.search) > SEARCH_CHARACTERS_MAX:
            raise ValueError(f"search: expected at most {SEARCH_CHARACTERS_MAX} characters")


class GroupRow(msgspec.Struct, frozen=True):
    """One group of the list. `lag` is None if the end of none of its partitions is known.

    `offsets` is the number of its committed offsets, `rebalances` that of its rebalances since `node` has loaded it.
    """

    group: str
    state: str
    type: str
    protocol_type: str
    members: int
    offsets: int
    lag: int | None
    rebalances: int
    node: int

    @property
    def characters(self) -> int:
        """The length of the names in it."""
        return len(self.group) + len(self.protocol_type)


class UnservedPart(msgspec.Struct, frozen=True):
    """The groups that an answer lacks: those of these partitions or, if none is named, all groups of the node."""

    node: int
    partitions: list[int]
    reason: str


def name_node(node: int) -> str:
    """Return a node of an UnservedPart in words."""
    return "no node" if node == NO_NODE else f"node {node}"


def list_unserved_parts(node: int, reasons: Mapping[Partition, str]) -> list[UnservedPart]:
    """Return the unserved partitions of a node, grouped by reason; after PARTS_MAX reasons the rest is one part."""
    found: dict[str, list[int]] = {}
    for partition, reason in sorted(reasons.items()):
        key = reason if reason in found or len(found) < PARTS_MAX else "of various reasons: see /ready"
        found.setdefault(key, []).append(partition)
    return [UnservedPart(node, partitions, reason) for reason, partitions in found.items()]


class GroupListPage(msgspec.Struct, frozen=True):
    """A page of the list. `total` counts all groups, `states` those that match `search`, by state.

    `next` is the text of the last row's position, and None at the end of the list.
    """

    groups: list[GroupRow]
    next: str | None
    total: int
    states: dict[str, int]
    missing: list[UnservedPart]


def position_of(row: GroupRow, sort: SortKey) -> Position:
    """Return a row's place in the order by `sort`: the value, which is empty in the order by id, and the id."""
    value = getattr(row, sort) if sort != "group" else ""
    return UNKNOWN_LAG if value is None else value, row.group


def format_position(position: Position) -> str:
    """Return a position as text for an address."""
    return f"{position[0]}:{position[1]}"


def parse_position(text: str, sort: SortKey) -> Position:
    """Return the position of a text that `format_position` has made for this order. Raises ValueError."""
    match = _TEXTS.get(sort, _NUMBER).fullmatch(text)
    if match is None:
        raise ValueError("after: expected the `next` of a page in the same order")
    return match[1] if sort in _TEXTS else int(match[1]), match[2]


def make_page(
    rows: Iterable[GroupRow],
    query: GroupListQuery,
    *,
    total: int,
    states: Counter[str],
    missing: Sequence[UnservedPart],
    has_more: bool = False,
) -> GroupListPage:
    """Return the page of these rows, in order; rows without room on it show that there is a next page."""
    shown, left_out = cut_page(rows, query.limit, query.characters_max)
    following = (
        format_position(position_of(shown[-1], query.sort)) if shown and (left_out or has_more) else None
    )
    return GroupListPage(shown, following, total, dict(states), list(missing))


def merge_pages(pages: Iterable[GroupListPage], query: GroupListQuery) -> GroupListPage:
    """Return the page of all nodes from the pages that each of them made for the same query.

    The merged page ends where the earliest unfinished page ends, because rows after that may be missing.
    """
    pages = list(pages)
    first: FirstOf[GroupRow] = FirstOf(query.limit + 1, query.after, descending=query.descending)
    ends: list[Position] = []
    states: Counter[str] = Counter()
    for page in pages:
        states.update(page.states)
        for row in page.groups:
            first.offer(position_of(row, query.sort), row)
        if page.next is not None:
            ends.append(position_of(page.groups[-1], query.sort))
    rows = first.in_order()
    if ends:
        end = max(ends) if query.descending else min(ends)
        rows = [
            row
            for row in rows
            if not is_before(end, position_of(row, query.sort), descending=query.descending)
        ]
    return make_page(
        rows,
        query,
        total=sum(page.total for page in pages),
        states=states,
        missing=[each for page in pages for each in page.missing],
        has_more=any(page.next is not None for page in pages),
    )
