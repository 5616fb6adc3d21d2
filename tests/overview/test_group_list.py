# SPDX-License-Identifier: Apache-2.0
"""Pages of the list of groups: in every order, of one node and merged from several."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.overview.group_list import (
    ORDERS,
    SEARCH_CHARACTERS_MAX,
    GroupListPage,
    GroupListQuery,
    GroupRow,
    SortKey,
    UnservedPart,
    format_position,
    make_page,
    merge_pages,
    parse_position,
    position_of,
)
from coordinator.overview.paging import LIMIT_MAX, PAGE_CHARACTERS_MAX, FirstOf

STATES = ("Empty", "Stable", "PreparingRebalance")


@st.composite
def node_rows(draw: st.DrawFn) -> list[list[GroupRow]]:
    """The groups of some nodes, without a group that is on two of them."""
    names = draw(st.lists(st.text(max_size=4), unique=True, max_size=30))
    nodes = draw(st.integers(1, 3))
    numbers = st.integers(0, 4)
    rows = [
        GroupRow(
            group=name,
            state=draw(st.sampled_from(STATES)),
            type="classic",
            protocol_type="consumer",
            members=draw(numbers),
            offsets=draw(numbers),
            lag=draw(st.none() | numbers),
            rebalances=draw(numbers),
            node=draw(st.integers(0, nodes - 1)),
        )
        for name in names
    ]
    return [[row for row in rows if row.node == node] for node in range(nodes)]


def page_of(rows: Sequence[GroupRow], query: GroupListQuery) -> GroupListPage:
    """The page that a node with these groups makes."""
    first: FirstOf[GroupRow] = FirstOf(query.limit + 1, query.after, descending=query.descending)
    for row in rows:
        first.offer(position_of(row, query.sort), row)
    states = Counter(row.state for row in rows)
    return make_page(first.in_order(), query, total=len(rows), states=states, missing=())


def walk(
    nodes: list[list[GroupRow]],
    sort: SortKey,
    limit: int,
    *,
    descending: bool,
    characters_max: int = PAGE_CHARACTERS_MAX,
) -> Iterator[GroupListPage]:
    """All pages, one after the other."""
    after = None
    while True:
        query = GroupListQuery("", "", sort, descending, limit, after, characters_max)
        page = merge_pages([page_of(rows, query) for rows in nodes], query)
        yield page
        if page.next is None:
            return
        after = parse_position(page.next, sort)


@given(node_rows(), st.sampled_from(ORDERS), st.integers(1, 7), st.booleans())
def test_pages_have_every_group_once_and_in_order(
    nodes: list[list[GroupRow]], sort: SortKey, limit: int, descending: bool
) -> None:
    everything = [row for rows in nodes for row in rows]
    pages = list(walk(nodes, sort, limit, descending=descending))
    shown = [row for page in pages for row in page.groups]
    assert shown == sorted(everything, key=lambda row: position_of(row, sort), reverse=descending)
    assert all(len(page.groups) == limit for page in pages[:-1])
    assert {page.total for page in pages} == {len(everything)}
    assert all(page.states == Counter(row.state for row in everything) for page in pages)


@given(node_rows(), st.sampled_from(ORDERS), st.integers(1, 7), st.booleans())
def test_pages_that_long_names_cut_short_have_every_group_once_and_in_order(
    nodes: list[list[GroupRow]], sort: SortKey, limit: int, descending: bool
) -> None:
    pages = walk(nodes, sort, limit, descending=descending, characters_max=11)  # those of about two groups
    shown = [row for page in pages for row in page.groups]
    everything = [row for rows in nodes for row in rows]
    assert shown == sorted(everything, key=lambda row: position_of(row, sort), reverse=descending)


def test_groups_without_a_known_lag_are_those_with_the_least() -> None:
    rows = [
        GroupRow(name, "Empty", "classic", "", 0, 1, lag, 0, 0)
        for name, lag in zip("abc", (0, None, 7), strict=True)
    ]
    page = page_of(rows, GroupListQuery(sort="lag", descending=True))
    assert [(row.group, row.lag) for row in page.groups] == [("c", 7), ("a", 0), ("b", None)]


def test_what_nodes_do_not_serve_is_named_by_the_merged_page() -> None:
    parts = [UnservedPart(1, [3], "loading"), UnservedPart(2, [], "no answer")]
    query = GroupListQuery()
    pages = [GroupListPage([], None, 0, {}, [part]) for part in parts]
    assert merge_pages(pages, query).missing == parts


@given(st.sampled_from(ORDERS), st.text(max_size=9), st.integers(-1, 2**63 - 1))
def test_a_position_is_read_as_it_was_written(sort: SortKey, group: str, number: int) -> None:
    value: int | str = {"group": "", "state": "Stable"}.get(sort, number)
    assert parse_position(format_position((value, group)), sort) == (value, group)


@pytest.mark.parametrize(
    ("text", "sort"),
    [("", "group"), ("x", "group"), ("1:g", "group"), ("x:g", "lag"), ("1:g", "state"), (":g", "members")],
)
def test_no_position_of_another_order_is_taken(text: str, sort: SortKey) -> None:
    with pytest.raises(ValueError, match="after: expected the `next` of a page in the same order"):
        parse_position(text, sort)


def test_a_query_has_bounds() -> None:
    for limit in (0, LIMIT_MAX + 1):
        with pytest.raises(ValueError, match=f"limit: expected a number from 1 to {LIMIT_MAX}"):
            GroupListQuery(limit=limit)
    with pytest.raises(ValueError, match="search: expected at most"):
        GroupListQuery(search="x" * (SEARCH_CHARACTERS_MAX + 1))
