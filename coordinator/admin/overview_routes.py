# SPDX-License-Identifier: Apache-2.0
"""The addresses below /api/v1, which show groups as JSON; docs/http.md describes them."""

import re
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from aiohttp import web

from coordinator.admin.shared_work import SharedWork
from coordinator.overview.group_details import (
    DetailsQuery,
    GroupAnswer,
    GroupNotFound,
    GroupQuery,
    MembersQuery,
    OffsetsQuery,
    parse_offset_position,
)
from coordinator.overview.group_list import (
    ORDERS,
    GroupListPage,
    GroupListQuery,
    name_node,
    parse_position,
)
from coordinator.overview.paging import LIMIT_DEFAULT
from coordinator.overview.partition_list import (
    FIRST,
    PartitionListPage,
    PartitionListQuery,
    parse_partition_position,
)
from coordinator.overview.status import ServiceStatus, StatusQuery

T = TypeVar("T")
Q = TypeVar("Q", bound=Hashable)

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class Overview(Protocol):
    """Finds what the addresses show."""

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of groups."""

    async def ask_about_group(self, query: GroupQuery) -> GroupAnswer:
        """Return the answer to a question about one group."""

    async def list_partitions(self, query: PartitionListQuery) -> PartitionListPage:
        """Return a page of the list of partitions."""

    async def get_status(self) -> ServiceStatus:
        """Return the status of all nodes."""


def add_overview_routes(router: web.UrlDispatcher, overview: Overview) -> None:
    """Add the addresses to a server."""
    routes: dict[str, _Route[Any]] = {
        "groups": _Route(parse_group_list_query, overview.list_groups),
        "group": _Route(parse_details_query, overview.ask_about_group),
        "group/members": _Route(parse_members_query, overview.ask_about_group),
        "group/offsets": _Route(parse_offsets_query, overview.ask_about_group),
        "partitions": _Route(parse_partition_list_query, overview.list_partitions),
        "status": _Route(lambda _: StatusQuery(), lambda _: overview.get_status()),
    }
    for name, route in routes.items():
        router.add_get(f"/api/v1/{name}", route.handle)


class _Route(Generic[Q]):
    """The handler of one address: simultaneous requests with the same query share the work."""

    def __init__(
        self,
        parse: Callable[[Mapping[str, str]], Q],
        ask: Callable[[Q], Coroutine[Any, Any, msgspec.Struct]],
    ) -> None:
        """`parse` returns the query of an address, or raises ValueError; `ask` returns the answer."""
        self._parse = parse
        self._ask = ask
        self._work: SharedWork[Q, bytes | GroupNotFound] = SharedWork("answer a question about groups")

    async def handle(self, request: web.Request) -> web.Response:
        try:
            query = self._parse(request.query)
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        answer = await self._work.get(query, partial(self._find, query))
        if isinstance(answer, GroupNotFound):
            return _not_found(answer)
        return web.Response(body=answer, content_type="application/json")

    async def _find(self, query: Q) -> bytes | GroupNotFound:
        answer = await self._ask(query)
        return answer if isinstance(answer, GroupNotFound) else msgspec.json.encode(answer)


def _not_found(answer: GroupNotFound) -> web.Response:
    if not answer.missing:
        return web.Response(status=404, text="there is no such group\n")
    part = answer.missing[0]
    return web.Response(
        status=503,
        text=f"the partition of this group is not available now: {name_node(part.node)}: {part.reason}\n",
    )


def parse_group_list_query(given: Mapping[str, str]) -> GroupListQuery:
    """Return the query of an address. Raises ValueError with one line that says what is expected."""
    _refuse_unknown(given, ("search", "state", "sort", "order", "limit", "after"))
    sort = _choice(given, "sort", ORDERS)
    return GroupListQuery(
        search=given.get("search", ""),
        state=given.get("state", ""),
        sort=sort,
        descending=_choice(given, "order", ("asc", "desc")) == "desc",
        limit=_limit(given),
        after=parse_position(given["after"], sort) if "after" in given else None,
    )


def parse_details_query(given: Mapping[str, str]) -> DetailsQuery:
    """Return the query of an address. Raises ValueError."""
    _refuse_unknown(given, ("group",))
    return DetailsQuery(_group_id(given))


def parse_members_query(given: Mapping[str, str]) -> MembersQuery:
    """Return the query of an address. Raises ValueError."""
    _refuse_unknown(given, ("group", "limit", "after"))
    return MembersQuery(_group_id(given), _limit(given), given.get("after", ""))


def parse_offsets_query(given: Mapping[str, str]) -> OffsetsQuery:
    """Return the query of an address. Raises ValueError."""
    _refuse_unknown(given, ("group", "limit", "after"))
    after = parse_offset_position(given["after"]) if "after" in given else None
    return OffsetsQuery(_group_id(given), _limit(given), after)


def parse_partition_list_query(given: Mapping[str, str]) -> PartitionListQuery:
    """Return the query of an address. Raises ValueError."""
    _refuse_unknown(given, ("limit", "after"))
    after = parse_partition_position(given["after"]) if "after" in given else FIRST
    return PartitionListQuery(_limit(given), after)


def _refuse_unknown(given: Mapping[str, str], known: Sequence[str]) -> None:
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise ValueError(f"{unknown[0]}: there is no such parameter")


def _group_id(given: Mapping[str, str]) -> str:
    if "group" not in given:
        raise ValueError("group: expected the id of a group")
    return given["group"]


def _limit(given: Mapping[str, str]) -> int:
    """Return the number of rows that is asked for, 0 if that is no number."""
    text = given.get("limit", str(LIMIT_DEFAULT))
    return int(text) if _NUMBER.fullmatch(text) else 0


def _choice(given: Mapping[str, str], name: str, choices: Sequence[T]) -> T:
    """Return the choice that is named, or the first. Raises ValueError."""
    wanted = given.get(name, choices[0])
    for choice in choices:
        if choice == wanted:
            return choice
    raise ValueError(f"{name}: expected {', '.join(map(str, choices[:-1]))} or {choices[-1]}")
