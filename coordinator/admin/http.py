# SPDX-License-Identifier: Apache-2.0
"""/metrics for Prometheus, /health (the process is alive), /ready (every partition that it leads is loaded).

/groups/expiring?within_ms=N: which offsets expire by then, for `groupkeeper groups expiring`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

WITHIN_MS_MAX: Final = 10 * 365 * 86_400_000


class AdminServer:
    """A small HTTP server beside the Kafka listener; bound to loopback unless `metrics.listen` says otherwise."""

    def __init__(
        self,
        registry: CollectorRegistry,
        readiness: Callable[[], dict[str, Any]],
        expiring: Callable[[int], Awaitable[object]],
        before_metrics: Callable[[], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._readiness = readiness
        self._expiring = expiring
        self._before_metrics = before_metrics
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/groups/expiring", self._groups_expiring)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which is another one if `port` was 0. Raises OSError when it is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host or None, port)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        await self._before_metrics()
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})

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
        found = await self._expiring(int(text))
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")
