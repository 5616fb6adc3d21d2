# SPDX-License-Identifier: Apache-2.0
"""How a coroutine of a session waits without an event loop: for a promise, whose result a later call brings.

The session starts a coroutine within the call that brings its request, and what waits for nothing ends there. Where a
promise is kept, the session runs the coroutine on. Once it is closed, it holds nothing and wakes nobody.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Wake = Callable[[], None]
"""Runs on the coroutine that waits, or that may come to wait."""


class Promise(Generic[T]):
    """A result that comes later. One coroutine awaits it."""

    __slots__ = ("_result", "_wake")

    def __init__(self, wake: Wake) -> None:
        self._wake: Wake | None = wake
        self._result: list[T | BaseException] = []  # one, once it is there

    def keep(self, result: T | BaseException) -> None:
        """The result is there; an exception is raised where it is awaited. The first counts, while anybody waits."""
        if self._wake is not None and not self._result:
            self._result.append(result)
            self._wake()

    def __await__(self) -> Generator[None, None, T]:
        """Return the result, or raise it."""
        try:
            while not self._result:
                yield
            result = self._result.pop()
        finally:
            self._wake = None
        if isinstance(result, BaseException):
            raise result
        return result


def run(coroutine: Coroutine[Any, Any, T]) -> T | None:
    """Run a coroutine until it waits, and return None then; else what it returns, which is never None.

    Raises what the coroutine raises.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    return None
