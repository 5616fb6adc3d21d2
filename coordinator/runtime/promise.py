# SPDX-License-Identifier: Apache-2.0
"""Coroutines that their caller runs, without a task and an event loop.

A coroutine that needs no result from elsewhere ends within the call of `run_until_next_wait`. Otherwise it awaits
a promise, and its caller resumes it after the promise was resolved. A coroutine that was closed keeps nothing alive.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Wake = Callable[[], None]
"""Resumes the coroutine that awaits a promise."""


class Promise(Generic[T]):
    """A result that a later call brings. Only one coroutine may await it."""

    __slots__ = ("_result", "_wake")

    def __init__(self, wake: Wake) -> None:
        """`wake` is called when the promise is resolved."""
        self._wake: Wake | None = wake
        self._result: list[T | BaseException] = []  # empty until it is resolved, then one

    def resolve(self, result: T | BaseException) -> None:
        """Set the result; an exception is raised in the coroutine that awaits it.

        Does nothing if there is a result already, or if the coroutine was closed.
        """
        if self._wake is not None and not self._result:
            self._result.append(result)
            self._wake()

    def __await__(self) -> Generator[None, None, T]:
        """Wait for the result and return it. Raises the exception with which the promise was resolved."""
        try:
            while not self._result:
                yield
            result = self._result.pop()
        finally:
            self._wake = None
        if isinstance(result, BaseException):
            raise result
        return result


def run_until_next_wait(coroutine: Coroutine[Any, Any, T]) -> T | None:
    """Run a coroutine until it waits or ends; return its result, or None if it waits.

    The coroutine must not return None. Raises whatever the coroutine raises.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    return None
