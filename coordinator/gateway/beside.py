# SPDX-License-Identifier: Apache-2.0
"""Work on long requests and answers is done in a thread beside the event loop, so that all others go on meanwhile.

A request may name 50,000 groups or topics: to decode it, to see what its client may do, and to make what passes or is
answered takes some tenths of a second. Whatever that needs of a connection stays as it is in that time, since the
connection's next request is taken only afterwards.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from coordinator.gateway.ways import LENGTH_BYTES, ClientSession, Rewrite
from coordinator.runtime.io_thread import Thread
from protocol.wire import INT32

T = TypeVar("T")

LONG_BYTES: Final = 2 * 1024
"""What is shorter is done at once: the dearest, 2,000 groups without a name, takes 15 ms."""


class Computing(Generic[T]):
    """What the thread works on for one connection, and what it came to."""

    def __init__(self, kind: object = None) -> None:
        """`kind` says what work it is: the function that is called."""
        self.kind = kind
        self._result: T | BaseException | None = None
        self.is_done = False

    def done(self, result: T | BaseException) -> None:
        """The thread has done it."""
        self._result, self.is_done = result, True

    def result(self) -> T:
        """What came of it; nothing is ever None here. Raises what the work has raised."""
        if isinstance(self._result, BaseException):
            raise self._result
        assert self._result is not None, "it is done"
        return self._result


class Remembers(Protocol):
    """What is remembered of a connection."""

    computing: Computing[object] | None


class Beside:
    """Does work at once where it is short, and else in the thread, which starts with the first long work."""

    def __init__(self, start: Callable[[], Thread]) -> None:
        self._start = start
        self._thread: Thread | None = None

    def close(self) -> None:
        """Finish what is under way."""
        if self._thread is not None:
            self._thread.close()

    def do(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Do this in the thread, and call `done` on the event loop with what came of it."""
        if self._thread is None:
            self._thread = self._start()
        self._thread.submit(work, done)

    def computed(self, session: ClientSession, memory: Remembers, size: int, work: partial[T]) -> T | None:
        """What `work` on a request of `size` bytes comes to; None while it is being done.

        Then the session goes on, and this is to be called again; what came of another function's work is not taken.
        Raises what the work raises.
        """
        if size <= LONG_BYTES:
            return work()
        computing = memory.computing
        if computing is None or computing.kind is not work.func:
            memory.computing = computing = Computing(work.func)
            self.do(work, partial(_go_on, session, computing))
            return None
        if not computing.is_done:
            return None
        memory.computing = None
        result: T = computing.result()  # type: ignore[assignment]  # of the same work
        return result

    def rewriting(self, session: ClientSession, rewrite: Rewrite) -> Rewrite:
        """As `rewrite`, which makes an answer from a whole one; a long one waits while that is done."""
        computing: Computing[tuple[bytes, int]] | None = None

        def rewrite_long(frame: bytes) -> tuple[bytes, int] | None:
            nonlocal computing
            if len(frame) <= LONG_BYTES or len(frame) < LENGTH_BYTES + INT32(frame, 0)[0]:
                return rewrite(frame)
            if computing is None:
                computing = Computing()
                self.do(partial(_rewritten, rewrite, frame), partial(_go_on, session, computing))
            return computing.result() if computing.is_done else None

        return rewrite_long


def _rewritten(rewrite: Rewrite, frame: bytes) -> tuple[bytes, int]:
    made = rewrite(frame)
    assert made is not None, "the answer is whole"
    return made


def _go_on(session: ClientSession, computing: Computing[T], result: T | BaseException) -> None:
    computing.done(result)
    session.go_on()
