# SPDX-License-Identifier: Apache-2.0
"""The page for people: `/` (groups), `/group` (one group) and `/nodes`; a browser asks /api/v1 for what they show."""

from pathlib import Path
from typing import Final

from aiohttp import web

_FOLDER: Final = Path(__file__).with_name("pages")
_FILES: Final = (
    "group.js",
    "groups.js",
    "icon.svg",
    "nodes.js",
    "page.css",
    "page.html",
    "page.js",
    "parts.js",
)
_VIEWS: Final = ("/", "/group", "/nodes")
_TYPES: Final = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS: Final = {
    "Cache-Control": "no-cache",  # a browser asks whether a file has changed, so that an upgrade shows at once
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_web_page(router: web.UrlDispatcher) -> None:
    """Add the page's addresses to a server."""
    for path in _VIEWS:
        router.add_get(path, _page)
    for name in _FILES:
        router.add_get(f"/{name}", _file)


async def _page(_request: web.Request) -> web.StreamResponse:
    return _respond("page.html")


async def _file(request: web.Request) -> web.StreamResponse:
    return _respond(request.path.rpartition("/")[2])


def _respond(name: str) -> web.FileResponse:
    file = _FOLDER / name
    return web.FileResponse(file, headers={**_HEADERS, "Content-Type": _TYPES[file.suffix]})
