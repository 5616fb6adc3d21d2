# SPDX-License-Identifier: Apache-2.0
"""Long work for HTTP requests: simultaneous requests for the same result share it, and one piece runs at a time."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from coordinator.runtime.tasks import Tasks

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedWorkFailed(Exception):
    """Raised if the shared work has failed; the log has the reason."""


class SharedWork(Generic[K, V]):
    """Runs work of one kind, one piece at a time: each running piece takes a slice of every turn of the event loop."""

    def __init__(self, name: str) -> None:
        """Create shared work with `name` as its name in the log."""
        self._name = name
        self._tasks = Tasks()
        self._turn = asyncio.Lock()
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return the result of `work`, or of the work that is under way for this key. Raises SharedWorkFailed."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = self._tasks.start(self._in_turn(work), self._name)
            task.add_done_callback(partial(self._ended, key))
        await asyncio.wait([task])
        if task.cancelled() or task.exception() is not None:
            raise SharedWorkFailed
        return task.result()

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        async with self._turn:
            return await work()

    def _ended(self, key: K, _task: "asyncio.Task[V]") -> None:
        del self._under_way[key]
