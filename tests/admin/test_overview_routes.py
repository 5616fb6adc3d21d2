# SPDX-License-Identifier: Apache-2.0
"""The addresses below /api/v1 of a running node."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import ClientSession, web

from coordinator.admin.overview_routes import parse_group_list_query
from coordinator.overview.group_list import GroupListQuery
from tests.partitions.running import Running, node

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", metrics=True) as running:
        await running.loaded()
        yield running


async def get(running: Running, path: str, **query: str) -> tuple[int, Any]:
    """Status and body of an answer."""
    assert running.app.serving is not None
    assert running.app.serving.metrics is not None
    address = running.app.serving.metrics.replace("/metrics", path)
    async with ClientSession() as session, session.get(address, params=query) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if answer.content_type == "application/json" else text


async def test_groups_are_paged_with_what_the_page_before_said(running: Running) -> None:
    client = await running.client()
    names = [f"group {number}/ä:{number}" for number in range(5)]
    for name in names:
        await client.commit(name, 0, 7)
    shown: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(3):
        status, page = await get(running, "/api/v1/groups", limit="2", **after)
        assert status == HTTPStatus.OK
        assert (page["total"], page["states"], page["missing"]) == (5, {"Empty": 5}, [])
        shown += page["groups"]
        after = {"after": page["next"]}
    assert page["next"] is None
    assert [row["group"] for row in shown] == names
    assert shown[0] == {
        "group": names[0],
        "state": "Empty",
        "type": "classic",
        "protocol_type": "",
        "members": 0,
        "offsets": 1,
        "lag": None,
        "rebalances": 0,
        "node": 1,
    }


async def test_many_at_once_share_the_work(running: Running) -> None:
    answers = await asyncio.gather(*(get(running, "/api/v1/groups", search="x") for _ in range(20)))
    assert {status for status, _ in answers} == {HTTPStatus.OK}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"sort": "size"}, "sort: expected group, state, members, offsets, lag or rebalances"),
        ({"order": "up"}, "order: expected asc or desc"),
        ({"limit": "0"}, "limit: expected a number from 1 to 500"),
        ({"limit": "1e2"}, "limit: expected a number from 1 to 500"),
        ({"limit": "9999999999"}, "limit: expected a number from 1 to 500"),
        ({"after": "x"}, "after: expected the `next` of a page in the same order"),
        ({"search": "x" * 1001}, "search: expected at most 1000 characters"),
        ({"offset": "3"}, "offset: there is no such parameter"),
    ],
)
async def test_a_bad_parameter_is_named(running: Running, query: dict[str, str], said: str) -> None:
    assert await get(running, "/api/v1/groups", **query) == (HTTPStatus.BAD_REQUEST, f"{said}\n")


def test_a_query_is_read_from_an_address() -> None:
    given = {"search": "a", "state": "Empty", "sort": "lag", "order": "desc", "limit": "9", "after": "-1:g"}
    assert parse_group_list_query(given) == GroupListQuery("a", "Empty", "lag", True, 9, (-1, "g"))
    assert parse_group_list_query({}) == GroupListQuery()
    with pytest.raises(web.HTTPBadRequest):
        parse_group_list_query({"sort": ""})


async def test_every_field_is_documented(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 7)
    _, page = await get(running, "/api/v1/groups")
    for name in (*page, *page["groups"][0], "search", "state", "sort", "order", "limit", "after"):
        assert f"`{name}`" in DOCUMENTED, name


async def test_every_field_of_the_status_is_documented(running: Running) -> None:
    status, found = await get(running, "/api/v1/status")
    assert status == HTTPStatus.OK
    assert (found["ready"], found["complete"], found["problems"], found["missing"]) == (True, True, [], [])
    for name in (*found, *found["nodes"][0]):
        assert f"`{name}`" in DOCUMENTED, name


async def test_the_documented_command_asks_for_groups(running: Running) -> None:
    ((path, query),) = re.findall(r'curl "http://127.0.0.1:9308(/[^?]+)\?([^"]+)"', DOCUMENTED)
    status, page = await get(running, path, **dict(parse_qsl(query)))
    assert (status, page["groups"]) == (HTTPStatus.OK, [])
