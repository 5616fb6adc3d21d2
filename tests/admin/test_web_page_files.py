# SPDX-License-Identifier: Apache-2.0
"""The files of the page for people, as a node serves them."""

import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest
from aiohttp import ClientResponse, ClientSession

from tests.partitions.running import Running, node

FOLDER = Path(__file__).parents[2] / "coordinator" / "admin" / "pages"
FILES = sorted(file.name for file in FOLDER.iterdir())


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", metrics=True) as running:
        await running.loaded()
        yield running


async def get(running: Running, path: str, **headers: str) -> tuple[ClientResponse, str]:
    """The answer to a request, with its text."""
    async with ClientSession() as session, session.get(running.http(path), headers=headers) as answer:
        return answer, await answer.text()


async def test_each_view_is_the_same_page(running: Running) -> None:
    expected = (FOLDER / "page.html").read_text(encoding="utf-8")
    for path in ("/", "/group?group=a%2Fb", "/nodes"):
        answer, text = await get(running, path)
        assert (answer.status, answer.content_type, text) == (HTTPStatus.OK, "text/html", expected)


@pytest.mark.parametrize("name", FILES)
async def test_a_browser_may_load_only_what_the_node_serves(running: Running, name: str) -> None:
    answer, text = await get(running, f"/{name}")
    assert text == (FOLDER / name).read_text(encoding="utf-8")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    types = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
    assert answer.content_type == types[name.rpartition(".")[2]]


async def test_a_browser_keeps_a_file_until_it_changes(running: Running) -> None:
    first, _ = await get(running, "/page.js")
    assert first.headers["Cache-Control"] == "no-cache"
    again, text = await get(running, "/page.js", **{"If-None-Match": first.headers["ETag"]})
    assert (again.status, text) == (HTTPStatus.NOT_MODIFIED, "")


@pytest.mark.parametrize(
    "path", ["/pages", "/page.py", "/../admin_server.py", "/%2e%2e/admin_server.py", "/pages/page.js"]
)
async def test_no_other_file_is_served(running: Running, path: str) -> None:
    answer, _ = await get(running, path)
    assert answer.status == HTTPStatus.NOT_FOUND


def test_no_file_names_another_address_or_has_code_in_the_page() -> None:
    for name in FILES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert not re.search(r"innerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(", text), name
    page = (FOLDER / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=", page)
