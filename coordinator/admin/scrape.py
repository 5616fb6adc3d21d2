# SPDX-License-Identifier: Apache-2.0
"""The page of metrics: collected once for all who ask at the same time, in slices that leave the loop to others."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from coordinator.runtime.slices import Nanos, Slices
from coordinator.runtime.tasks import Tasks

SLICE_NS: Final = 2_000_000
"""A slice of the work that has taken so long is the last one of its turn of the event loop."""
FAMILIES_AT_A_TIME: Final = 4
EOF: Final = b"# EOF\n"


class CannotCollect(Exception):
    """The metrics could not be collected; the log says why."""


class Some:
    """What an encoder asks of a registry, for some metrics of it."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """These metrics."""
        return iter(self._metrics)


class Page:
    """/metrics; `prepare` is awaited before each collection."""

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
        self._tasks = Tasks()
        self._under_way: dict[str, asyncio.Task[bytes]] = {}
        self.collections = 0

    async def get(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, in the format that an Accept header prefers. Raises CannotCollect."""
        encode, content_type = choose_encoder(accept)
        task = self._under_way.get(content_type)
        if task is None:
            task = self._tasks.start(self._collect(encode), "collection of metrics")
            self._under_way[content_type] = task
            task.add_done_callback(lambda _task: self._under_way.pop(content_type))
        await asyncio.wait([task])
        if task.cancelled() or task.exception() is not None:
            raise CannotCollect
        return task.result(), content_type

    async def _collect(self, encode: Callable[[CollectorRegistry], bytes]) -> bytes:
        self.collections += 1
        await self.prepare()
        metrics = iter(self._registry.collect())
        parts = []
        is_open = False
        slices = Slices(self._nanos, self._slice_ns)
        while some := list(islice(metrics, FAMILIES_AT_A_TIME)):
            part = encode(cast(CollectorRegistry, Some(some)))
            is_open = part.endswith(EOF)
            parts.append(part.removesuffix(EOF))
            if slices.over:
                await slices.give_way()
        return b"".join(parts) + (EOF if is_open else b"")
