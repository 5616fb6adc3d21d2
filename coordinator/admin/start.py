# SPDX-License-Identifier: Apache-2.0
"""Starts the HTTP server of a node; imported last, because its imports take as long as all before it."""

from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.registry import Collector

from coordinator.admin.admin_server import AdminServer
from coordinator.admin.metrics import NodeCollector
from coordinator.admin.metrics_page import MetricsEndpoint
from coordinator.admin.overview_routes import Overview
from coordinator.admin.ready_response import ReadyResponse
from coordinator.config import Address
from coordinator.runtime.slices import Nanos
from coordinator.start_error import CannotStart


async def start_admin(
    address: Address,
    node: NodeCollector,
    more: Iterable[Collector],
    nanos: Nanos,
    readiness: Callable[[], ReadyResponse],
    preview_expiry: Callable[[int], Awaitable[object]],
    overview: Overview,
) -> tuple[AdminServer, str]:
    """Serve /metrics and the other paths at this address; return the server, and the URL of its metrics.

    /metrics shows what `node` and `more` collect, /api/v1 what `overview` finds. Raises CannotStart if the
    address is taken.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(node)
    for collector in more:
        registry.register(collector)
    metrics = MetricsEndpoint(registry, node.update_group_counts, nanos)
    admin = AdminServer(metrics, readiness, preview_expiry, overview)
    try:
        port = await admin.start(address.host, address.port)
    except OSError as error:
        raise CannotStart(f"metrics.listen: cannot listen on {address}: {error.strerror or error}") from error
    return admin, f"http://{Address(address.host, port)}/metrics"
