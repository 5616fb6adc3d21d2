# SPDX-License-Identifier: Apache-2.0
"""One page of the list of partitions: the query, the page, and how the pages of several nodes become one. Pure."""

import re
from collections.abc import Iterable
from heapq import nsmallest
from typing import Final, Literal

import msgspec

from coordinator.overview.group_list import UnservedPart
from coordinator.overview.paging import LIMIT_DEFAULT, check_limit

FIRST: Final = -1
"""The number after which the first page begins."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")

PartitionState = Literal["served", "loading", "waiting", "failed"]


class PartitionListQuery(msgspec.Struct, frozen=True, tag=True):
    """Asks for a page of the partitions after the number `after`. Raises ValueError for a wrong limit."""

    limit: int = LIMIT_DEFAULT
    after: int = FIRST

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        check_limit(self.limit)


class PartitionRow(msgspec.Struct, frozen=True):
    """A partition that `node` leads. It is `waiting` while the log accepts no commits, which its load needs.

    `log_bytes` is the size of its segments, and `end_offset` that of the log; both are None if it cannot be read.
    """

    partition: int
    node: int
    leader_epoch: int
    state: PartitionState
    reason: str
    groups: int
    log_bytes: int | None
    end_offset: int | None


class PartitionListPage(msgspec.Struct, frozen=True):
    """A page of the partitions in the order of their numbers; `total` counts all that a node leads."""

    partitions: list[PartitionRow]
    next: str | None
    total: int
    missing: list[UnservedPart]


def make_partition_page(
    rows: Iterable[PartitionRow],
    query: PartitionListQuery,
    *,
    total: int,
    missing: Iterable[UnservedPart] = (),
    has_more: bool = False,
) -> PartitionListPage:
    """Return the first rows as a page; rows without room on it show that there is a next page."""
    first = nsmallest(query.limit + 1, rows, key=_number)
    shown = first[: query.limit]
    following = str(shown[-1].partition) if shown and (has_more or len(first) > len(shown)) else None
    return PartitionListPage(shown, following, total, list(missing))


def parse_partition_position(text: str) -> int:
    """Return the number of a partition after which a page begins. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("after: expected the `next` of another page")
    return int(text)


def _number(row: PartitionRow) -> int:
    return row.partition


def merge_partition_pages(
    pages: Iterable[PartitionListPage], query: PartitionListQuery, missing: Iterable[UnservedPart]
) -> PartitionListPage:
    """Return the page of all nodes; `missing` are the parts that could not be asked."""
    pages = list(pages)
    return make_partition_page(
        (row for page in pages for row in page.partitions),
        query,
        total=sum(page.total for page in pages),
        missing=missing,
        has_more=any(page.next is not None for page in pages),
    )
