# SPDX-License-Identifier: Apache-2.0
"""The page of metrics, collected once for simultaneous requests, in slices between which the event loop goes on."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from coordinator.admin.shared_work import SharedWork
from coordinator.runtime.slices import Nanos, Slices

SLICE_NS: Final = 2_000_000
"""The nanoseconds of work after which the collection yields to the event loop."""
FAMILIES_AT_A_TIME: Final = 4
EOF: Final = b"# EOF\n"


class PartialMetricsRegistry:
    """Some metrics of a registry, with the interface that an encoder uses."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Return the selected metrics."""
        return iter(self._metrics)


class MetricsEndpoint:
    """The page /metrics; `prepare` is awaited before each collection."""

    def __init__(
        self,
        registry: CollectorRegistry,
        prepare: Callable[[], Awaitable[None]],
        nanos: Nanos,
        slice_ns: int = SLICE_NS,
    ) -> None:
        self._registry = registry
        self.prepare = prepare
        self._nanos = nanos
        self._slice_ns = slice_ns
        self._shared: SharedWork[str, bytes] = SharedWork("collection of metrics")
        self.collections = 0

    async def get(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, in the format that an Accept header prefers.

        Raises SharedWorkFailed.
        """
        encode, content_type = choose_encoder(accept)
        return await self._shared.get(content_type, partial(self._collect, encode)), content_type

    async def _collect(self, encode: Callable[[CollectorRegistry], bytes]) -> bytes:
        self.collections += 1
        await self.prepare()
        metrics = iter(self._registry.collect())
        parts = []
        is_open = False
        slices = Slices(self._nanos, self._slice_ns)
        while some := list(islice(metrics, FAMILIES_AT_A_TIME)):
            part = encode(cast(CollectorRegistry, PartialMetricsRegistry(some)))
            is_open = part.endswith(EOF)
            parts.append(part.removesuffix(EOF))
            if slices.is_over:
                await slices.yield_to_event_loop()
        return b"".join(parts) + (EOF if is_open else b"")
