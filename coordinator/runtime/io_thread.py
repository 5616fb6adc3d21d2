# SPDX-License-Identifier: Apache-2.0
"""A thread that may wait for the disk."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class BlockingCallQueue(Protocol):
    """Takes blocking calls, which run one after the other, and brings their results to the event loop."""

    def submit_with_callback(
        self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]
    ) -> None:
        """Run `call` off the event loop, then `on_done` on the loop with the result or the exception of `call`."""


class ClosableCallQueue(BlockingCallQueue, Protocol):
    """Takes blocking calls until it is closed."""

    def close(self) -> None:
        """Finish the submitted calls, and accept no more."""


class BlockingCallThread(ClosableCallQueue, Protocol):
    """A thread that may wait for the disk, as far as a node needs it."""

    async def run_blocking(self, call: Callable[[], T]) -> T:
        """Run `call` off the event loop and return its result. Raises what `call` raised."""


class IoThread:
    """Runs blocking calls one after the other and brings their results back to the event loop.

    Lighter than an executor: no Future per call, which a flush per turn of the event loop would pay for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._calls: SimpleQueue[tuple[Callable[[], object], Callable[[Any], None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit_with_callback(
        self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]
    ) -> None:
        """Run `call` in the thread, then `on_done` on the event loop with its result or the exception it raised."""
        self._calls.put((call, on_done))

    async def run_blocking(self, call: Callable[[], T]) -> T:
        """Run `call` in the thread and return its result. Raises what `call` raised."""
        future: asyncio.Future[T] = self._loop.create_future()

        def settle(result: T | BaseException) -> None:
            if future.done():  # the waiting task was cancelled
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit_with_callback(call, settle)
        return await future

    def close(self) -> None:
        """Finish the submitted calls and end the thread."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, on_done = item
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - handed to on_done, which must get every error
                result = error
            try:
                self._loop.call_soon_threadsafe(on_done, result)
            except RuntimeError:
                return  # the loop is closed: no callback can run any more
