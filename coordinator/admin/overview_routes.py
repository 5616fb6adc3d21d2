# SPDX-License-Identifier: Apache-2.0
"""The addresses below /api/v1, which show groups as JSON; docs/http.md describes them."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

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
from coordinator.overview.status import ServiceStatus

T = TypeVar("T")

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_PAGE_OF_GROUP_FIELDS: Final = {"group", "limit", "after"}
_FIELDS: Final = {"search", "state", "sort", "order", "limit", "after"}


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


class OverviewRoutes:
    """The handlers of the addresses."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._pages: SharedWork[GroupListQuery, bytes] = SharedWork("page of groups")
        self._asked: Mapping[type[GroupQuery], SharedWork[GroupQuery, GroupAnswer]] = {
            kind: SharedWork(f"{kind.__name__} of a group")
            for kind in (DetailsQuery, MembersQuery, OffsetsQuery)
        }
        self._partition_pages: SharedWork[PartitionListQuery, bytes] = SharedWork("page of partitions")
        self._statuses: SharedWork[None, bytes] = SharedWork("status of all nodes")

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the addresses to a server."""
        router.add_get("/api/v1/groups", self._groups)
        router.add_get("/api/v1/group", partial(self._group, parse_details_query))
        router.add_get("/api/v1/group/members", partial(self._group, parse_members_query))
        router.add_get("/api/v1/group/offsets", partial(self._group, parse_offsets_query))
        router.add_get("/api/v1/partitions", self._partitions)
        router.add_get("/api/v1/status", self._status)

    async def _groups(self, request: web.Request) -> web.Response:
        query = parse_group_list_query(request.query)
        body = await self._pages.get(query, partial(self._page, query))
        return web.Response(body=body, content_type="application/json")

    async def _group(
        self, parse: Callable[[Mapping[str, str]], GroupQuery], request: web.Request
    ) -> web.Response:
        query = parse(request.query)
        answer = await self._asked[type(query)].get(query, partial(self._overview.ask_about_group, query))
        if isinstance(answer, GroupNotFound):
            return _not_found(answer)
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def _partitions(self, request: web.Request) -> web.Response:
        query = parse_partition_list_query(request.query)
        body = await self._partition_pages.get(query, partial(self._page_of_partitions, query))
        return web.Response(body=body, content_type="application/json")

    async def _page_of_partitions(self, query: PartitionListQuery) -> bytes:
        return msgspec.json.encode(await self._overview.list_partitions(query))

    async def _status(self, _request: web.Request) -> web.Response:
        body = await self._statuses.get(None, self._encoded_status)
        return web.Response(body=body, content_type="application/json")

    async def _encoded_status(self) -> bytes:
        return msgspec.json.encode(await self._overview.get_status())

    async def _page(self, query: GroupListQuery) -> bytes:
        return msgspec.json.encode(await self._overview.list_groups(query))


def _not_found(answer: GroupNotFound) -> web.Response:
    if not answer.missing:
        return web.Response(status=404, text="there is no such group\n")
    part = answer.missing[0]
    return web.Response(
        status=503,
        text=f"the partition of this group is not available now: {name_node(part.node)}: {part.reason}\n",
    )


def parse_group_list_query(given: Mapping[str, str]) -> GroupListQuery:
    """Return the query of an address. Raises HTTPBadRequest with one line that says what is expected."""
    _refuse_unknown(given, _FIELDS)
    try:
        sort = _choice(given, "sort", ORDERS)
        return GroupListQuery(
            search=given.get("search", ""),
            state=given.get("state", ""),
            sort=sort,
            descending=_choice(given, "order", ("asc", "desc")) == "desc",
            limit=_limit(given),
            after=parse_position(given["after"], sort) if "after" in given else None,
        )
    except ValueError as error:
        raise _bad_request(error) from None


def parse_details_query(given: Mapping[str, str]) -> DetailsQuery:
    """Return the query of an address. Raises HTTPBadRequest."""
    _refuse_unknown(given, {"group"})
    return DetailsQuery(_group_id(given))


def parse_members_query(given: Mapping[str, str]) -> MembersQuery:
    """Return the query of an address. Raises HTTPBadRequest."""
    _refuse_unknown(given, _PAGE_OF_GROUP_FIELDS)
    try:
        return MembersQuery(_group_id(given), _limit(given), given.get("after", ""))
    except ValueError as error:
        raise _bad_request(error) from None


def parse_offsets_query(given: Mapping[str, str]) -> OffsetsQuery:
    """Return the query of an address. Raises HTTPBadRequest."""
    _refuse_unknown(given, _PAGE_OF_GROUP_FIELDS)
    try:
        after = parse_offset_position(given["after"]) if "after" in given else None
        return OffsetsQuery(_group_id(given), _limit(given), after)
    except ValueError as error:
        raise _bad_request(error) from None


def parse_partition_list_query(given: Mapping[str, str]) -> PartitionListQuery:
    """Return the query of an address. Raises HTTPBadRequest."""
    _refuse_unknown(given, {"limit", "after"})
    try:
        after = parse_partition_position(given["after"]) if "after" in given else FIRST
        return PartitionListQuery(_limit(given), after)
    except ValueError as error:
        raise _bad_request(error) from None


def _refuse_unknown(given: Mapping[str, str], known: Collection[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise web.HTTPBadRequest(text=f"{unknown[0]}: there is no such parameter\n")


def _bad_request(error: ValueError) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=f"{error}\n")


def _group_id(given: Mapping[str, str]) -> str:
    """Return the id of the group. Raises HTTPBadRequest if there is none."""
    if "group" not in given:
        raise web.HTTPBadRequest(text="group: expected the id of a group\n")
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
