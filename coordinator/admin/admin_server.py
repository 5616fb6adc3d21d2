# SPDX-License-Identifier: Apache-2.0
"""The HTTP server with /metrics (for Prometheus), /health (the process is alive) and /ready (see docs/operations.md).

/groups/expiring?within_ms=N: the offsets that expire within N milliseconds, for `groupkeeper groups expiring`.
/api/v1: the groups (`overview_routes`); / is a page that shows them (`web_page`).

All requests are GET, without a body. If the server listens on loopback only, requests must name a loopback host: else
a web page could make a browser on this machine read the data, under a host name that resolves to this machine.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from coordinator.admin.guard import Guard
from coordinator.admin.metrics_page import MetricsEndpoint
from coordinator.admin.overview_routes import Overview, add_overview_routes
from coordinator.admin.ready_response import ReadyResponse
from coordinator.admin.shared_work import SharedWork, SharedWorkFailed
from coordinator.admin.web_page import add_web_page
from coordinator.telemetry.logs import get_logger

log = get_logger("admin")

WITHIN_MS_MAX: Final = 10 * 365 * 86_400_000
SHUTDOWN_S: Final = 1.0


def _note_bad_request(record: logging.LogRecord) -> bool:
    """Log a request that is not HTTP in one line, not with aiohttp's traceback; return whether to keep the record."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError):
        return True
    log.info(
        "refusing a request that is not HTTP", reason=error.message.partition(":")[0]
    )  # the rest is what the peer has sent
    return False


SERVER_LOG: Final = logging.getLogger("groupkeeper.admin.http")
"""The logger of aiohttp's server."""
SERVER_LOG.addFilter(_note_bad_request)


class AdminServer:
    """A small HTTP server next to the Kafka listener; bound to loopback unless `metrics.listen` says otherwise."""

    def __init__(
        self,
        page: MetricsEndpoint,
        readiness: Callable[[], ReadyResponse],
        expiring: Callable[[int], Awaitable[object]] | None = None,
        overview: Overview | None = None,
    ) -> None:
        """Create a server; /groups/expiring needs `expiring`, and /api/v1 and the page need `overview`."""
        self._readiness = readiness
        self._expiring = expiring
        self._previews: SharedWork[int, bytes] = SharedWork("preview of expiry")
        self.page = page
        app = web.Application(middlewares=[self._check])
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        if expiring is not None:
            app.router.add_get("/groups/expiring", self._groups_expiring)
        if overview is not None:
            add_overview_routes(app.router, overview)
            add_web_page(app.router)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=SERVER_LOG,
            shutdown_timeout=SHUTDOWN_S,
            lingering_time=0.0,
            max_headers=64,
        )
        self._listening: asyncio.Server | None = None
        self._only_loopback = False
        self.guard = Guard(self._new_handler)

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port, which the system chooses if `port` is 0. Raises OSError if it is taken."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self.guard, host or None, port, backlog=128)
        addresses = [sock.getsockname() for sock in self._listening.sockets]
        self._only_loopback = all(is_loopback(address[0]) for address in addresses)
        return int(addresses[0][1])

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()
        self.guard.close()

    def _new_handler(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None, "not set up"
        return server()

    @web.middleware
    async def _check(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        transport = request.transport
        if request.body_exists:
            refusal = web.Response(status=413, text="no path here takes a body\n")
            refusal.force_close()
            return refusal
        if self._only_loopback and not names_loopback(request.headers.get("Host", "")):
            return web.Response(status=403, text="this node is to be asked for as localhost or 127.0.0.1\n")
        self.guard.stop_connection_clock(transport)
        try:
            return await handler(request)
        except SharedWorkFailed:
            return web.Response(
                status=500, text="the answer could not be collected; the log has the reason\n"
            )
        finally:
            self.guard.restart_clock_after_response(transport)

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = await self.page.get(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def _ready(self, request: web.Request) -> web.Response:
        strict = request.query.get("strict", "0")
        if strict not in ("0", "1"):
            raise web.HTTPBadRequest(text="strict: expected 0 or 1\n")
        state = self._readiness()
        good = state["complete"] if strict == "1" else state["ready"]
        return web.json_response(state, status=200 if good else 503)

    async def _groups_expiring(self, request: web.Request) -> web.Response:
        text = request.query.get("within_ms", "")
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= WITHIN_MS_MAX):
            raise web.HTTPBadRequest(text=f"within_ms: expected milliseconds up to {WITHIN_MS_MAX}\n")
        within_ms = int(text)
        body = await self._previews.get(within_ms, partial(self._preview, within_ms))
        return web.Response(body=body, content_type="application/json")

    async def _preview(self, within_ms: int) -> bytes:
        assert self._expiring is not None, "without it there is no such route"
        return msgspec.json.encode(await self._expiring(within_ms))


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address, which only this machine can reach."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def names_loopback(host_header: str) -> bool:
    """Return whether a Host header, with or without a port, names loopback, or is missing (HTTP/1.0)."""
    name = (
        host_header.partition("]")[0].removeprefix("[")
        if host_header.startswith("[")
        else host_header.partition(":")[0]
    )
    return not host_header or name.lower() == "localhost" or is_loopback(name)
