# SPDX-License-Identifier: Apache-2.0
"""The addresses below /api/v1 of a running node."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from coordinator.admin.overview_routes import parse_group_list_query
from coordinator.overview.group_details import EndedRebalance, MemberRow, RunningRebalance
from coordinator.overview.group_list import GroupListQuery
from protocol.newtypes import GroupId, Partition
from tests.partitions.running import PARTITIONS, Running, node

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", metrics=True) as running:
        await running.loaded()
        yield running


async def get(running: Running, path: str, **query: str) -> tuple[int, Any]:
    """Status and body of an answer."""
    async with ClientSession() as session, session.get(running.http(path), params=query) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if answer.content_type == "application/json" else text


def assert_documented(address: str, names: Iterable[str]) -> None:
    """The section about an address has each of these names."""
    section = re.split(r"^#+ ", DOCUMENTED.partition(f"# {address}\n")[2], flags=re.MULTILINE)[0]
    assert [name for name in names if f"`{name}`" not in section] == []


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


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("", {}, "group: expected the id of a group"),
        ("", {"group": "g", "limit": "1"}, "limit: there is no such parameter"),
        ("/members", {}, "group: expected the id of a group"),
        ("/members", {"group": "g", "limit": "501"}, "limit: expected a number from 1 to 500"),
        ("/members", {"group": "g", "sort": "x"}, "sort: there is no such parameter"),
        ("/offsets", {}, "group: expected the id of a group"),
        ("/offsets", {"group": "g", "limit": "x"}, "limit: expected a number from 1 to 500"),
        ("/offsets", {"group": "g", "after": "t:0"}, "after: expected the `next` of another page"),
        ("/offsets", {"group": "g", "topic": "t"}, "topic: there is no such parameter"),
    ],
)
async def test_a_bad_parameter_of_a_group_is_named(
    running: Running, path: str, query: dict[str, str], said: str
) -> None:
    assert await get(running, f"/api/v1/group{path}", **query) == (HTTPStatus.BAD_REQUEST, f"{said}\n")


async def test_a_group_that_does_not_exist_is_not_found(running: Running) -> None:
    for path in ("", "/members", "/offsets"):
        found = await get(running, f"/api/v1/group{path}", group="no/such group")
        assert found == (HTTPStatus.NOT_FOUND, "there is no such group\n")


async def test_a_group_whose_partition_is_not_served_cannot_be_asked(running: Running) -> None:
    partition = running.app.manager.partition_for(GroupId("g"))
    running.app.leadership.failed_partitions[partition] = "damaged"
    del running.app.manager.owned_partitions[partition]
    assert await get(running, "/api/v1/group", group="g") == (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the partition of this group is not available now: node 1: damaged\n",
    )


async def test_offsets_are_paged_with_what_the_page_before_said(running: Running) -> None:
    client = await running.client()
    for number in range(3):
        await client.commit("g", number, 7 + number)
    shown: list[tuple[int, int]] = []
    query: dict[str, str] = {}
    for _ in range(2):
        status, page = await get(running, "/api/v1/group/offsets", group="g", limit="2", **query)
        assert (status, page["total"]) == (HTTPStatus.OK, 3)
        shown += [(row["partition"], row["offset"]) for row in page["offsets"]]
        query = {"after": page["next"]}
    assert (shown, page["next"]) == ([(0, 7), (1, 8), (2, 9)], None)


async def test_every_field_of_a_group_is_documented(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 7)
    _, found = await get(running, "/api/v1/group", group="g")
    _, members = await get(running, "/api/v1/group/members", group="g")
    _, offsets = await get(running, "/api/v1/group/offsets", group="g")
    pages = ("group", "limit", "after")
    rebalances = (*EndedRebalance.__struct_fields__, *RunningRebalance.__struct_fields__)
    assert_documented("/api/v1/group", (*found, *rebalances))
    assert_documented("/api/v1/group/members", (*members, *MemberRow.__struct_fields__, *pages))
    assert_documented("/api/v1/group/offsets", (*offsets, *offsets["offsets"][0], *pages))


def test_a_query_is_read_from_an_address() -> None:
    given = {"search": "a", "state": "Empty", "sort": "lag", "order": "desc", "limit": "9", "after": "-1:g"}
    assert parse_group_list_query(given) == GroupListQuery("a", "Empty", "lag", True, 9, (-1, "g"))
    assert parse_group_list_query({}) == GroupListQuery()
    with pytest.raises(ValueError, match="sort: expected"):
        parse_group_list_query({"sort": ""})


async def test_every_field_is_documented(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 7)
    _, page = await get(running, "/api/v1/groups")
    names = (*page, *page["groups"][0], "search", "state", "sort", "order", "limit", "after")
    assert_documented("/api/v1/groups", names)


async def test_partitions_are_paged_with_what_the_page_before_said(running: Running) -> None:
    client, manager = await running.client(), running.app.manager
    await client.commit("g", 0, 7)
    holder = manager.partition_for(GroupId("g"))
    broken = Partition((holder + 1) % PARTITIONS)
    running.app.leadership.failed_partitions[broken] = "damaged"
    del manager.owned_partitions[broken]
    shown: list[dict[str, Any]] = []
    query: dict[str, str] = {}
    for _ in range(PARTITIONS // 2):
        status, page = await get(running, "/api/v1/partitions", limit="2", **query)
        assert (status, page["total"], page["missing"]) == (HTTPStatus.OK, PARTITIONS, [])
        shown += page["partitions"]
        query = {"after": page["next"]}
    assert page["next"] is None
    assert [row["partition"] for row in shown] == list(range(PARTITIONS))
    states = {row["partition"]: (row["state"], row["reason"], row["groups"]) for row in shown}
    others = dict.fromkeys(range(PARTITIONS), ("served", "", 0))
    assert states == others | {broken: ("failed", "damaged", 0), holder: ("served", "", 1)}
    assert shown[holder]["end_offset"] > 0
    assert_documented("/api/v1/partitions", (*page, *shown[0], "limit", "after"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"limit": "0"}, "limit: expected a number from 1 to 500"),
        ({"after": "-1"}, "after: expected the `next` of another page"),
        ({"node": "1"}, "node: there is no such parameter"),
    ],
)
async def test_a_bad_parameter_of_the_partitions_is_named(
    running: Running, query: dict[str, str], said: str
) -> None:
    assert await get(running, "/api/v1/partitions", **query) == (HTTPStatus.BAD_REQUEST, f"{said}\n")


async def test_every_field_of_the_status_is_documented(running: Running) -> None:
    status, found = await get(running, "/api/v1/status")
    assert status == HTTPStatus.OK
    assert (found["ready"], found["complete"], found["problems"], found["missing"]) == (True, True, [], [])
    assert_documented("/api/v1/status", (*found, *found["nodes"][0]))
