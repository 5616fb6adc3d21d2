# SPDX-License-Identifier: Apache-2.0
"""Tasks with an owner: each is kept until it ends, and one that fails is logged and reported to its owner."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

OnFailed = Callable[[BaseException], None]


def _keep_on(_error: BaseException) -> None:
    """Do nothing, as the owner needs no notice."""


class Tasks:
    """The tasks of one owner, and the only way to start one.

    asyncio keeps no reference to a task, and it reports the exception of a task only if no code asks for it.
    """

    def __init__(self, on_failed: OnFailed = _keep_on) -> None:
        """`on_failed` is called with the exception of each task that fails, unless `start` names another callback."""
        self._on_failed = on_failed
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Return the number of tasks that still run."""
        return len(self._running)

    def start(
        self, coroutine: Coroutine[Any, Any, T], name: str, on_failed: OnFailed | None = None
    ) -> asyncio.Task[T]:
        """Run a coroutine as a task, which the log names `name` if it fails. A cancelled task has not failed."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._running.add(task)
        task.add_done_callback(partial(self._ended, on_failed or self._on_failed))
        return task

    def _ended(self, on_failed: OnFailed, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # The loop's handler logs it with its traceback, as it does for a callback that fails.
            task.get_loop().call_exception_handler(
                {"message": f"{task.get_name()}: failed", "exception": error}
            )
            on_failed(error)

    def cancel(self) -> None:
        """Cancel all tasks that still run."""
        for task in self._running:
            task.cancel()

    async def wait_until_done(self) -> None:
        """Return once all tasks have ended, those that start meanwhile included."""
        while self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Cancel all tasks, and return once they have ended."""
        self.cancel()
        await self.wait_until_done()
