# SPDX-License-Identifier: Apache-2.0
"""The addresses below /api/v1, which show groups as JSON; docs/http.md describes them."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

import msgspec
from aiohttp import web

from coordinator.admin.shared_work import SharedWork
from coordinator.overview.group_list import ORDERS, GroupListPage, GroupListQuery, parse_position
from coordinator.overview.status import ServiceStatus

T = TypeVar("T")

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_FIELDS: Final = {"search", "state", "sort", "order", "limit", "after"}


class Overview(Protocol):
    """Finds what the addresses show."""

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of groups."""

    async def get_status(self) -> ServiceStatus:
        """Return the status of all nodes."""


class OverviewRoutes:
    """The handlers of the addresses."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._pages: SharedWork[GroupListQuery, bytes] = SharedWork("page of groups")
        self._statuses: SharedWork[None, bytes] = SharedWork("status of all nodes")

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the addresses to a server."""
        router.add_get("/api/v1/groups", self._groups)
        router.add_get("/api/v1/status", self._status)

    async def _groups(self, request: web.Request) -> web.Response:
        query = parse_group_list_query(request.query)
        body = await self._pages.get(query, partial(self._page, query))
        return web.Response(body=body, content_type="application/json")

    async def _status(self, _request: web.Request) -> web.Response:
        body = await self._statuses.get(None, self._encoded_status)
        return web.Response(body=body, content_type="application/json")

    async def _encoded_status(self) -> bytes:
        return msgspec.json.encode(await self._overview.get_status())

    async def _page(self, query: GroupListQuery) -> bytes:
        return msgspec.json.encode(await self._overview.list_groups(query))


def parse_group_list_query(given: Mapping[str, str]) -> GroupListQuery:
    """Return the query of an address. Raises HTTPBadRequest with one line that says what is expected."""
    unknown = sorted(given.keys() - _FIELDS)
    if unknown:
        raise web.HTTPBadRequest(text=f"{unknown[0]}: there is no such parameter\n")
    try:
        sort = _choice(given, "sort", ORDERS)
        limit = given.get("limit", str(GroupListQuery().limit))
        return GroupListQuery(
            search=given.get("search", ""),
            state=given.get("state", ""),
            sort=sort,
            descending=_choice(given, "order", ("asc", "desc")) == "desc",
            limit=int(limit) if _NUMBER.fullmatch(limit) else 0,
            after=parse_position(given["after"], sort) if "after" in given else None,
        )
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from None


def _choice(given: Mapping[str, str], name: str, choices: Sequence[T]) -> T:
    """Return the choice that is named, or the first. Raises ValueError."""
    wanted = given.get(name, choices[0])
    for choice in choices:
        if choice == wanted:
            return choice
    raise ValueError(f"{name}: expected {', '.join(map(str, choices[:-1]))} or {choices[-1]}")
