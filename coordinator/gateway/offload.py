# SPDX-License-Identifier: Apache-2.0
"""Work on long requests and answers is done in a thread beside the event loop, so that all others go on meanwhile.

A request may name 50,000 groups or topics: to decode it, to see what its client may do, and to make what passes or is
answered takes some tenths of a second. Whatever that needs of a connection stays as it is in that time, since the
connection's next request is taken only afterwards.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from coordinator.gateway.routing import (
    COLLECTED_BYTES_MAX,
    LENGTH_BYTES,
    UNCHANGED,
    ClientSession,
    Rewrite,
    Rewriting,
)
from coordinator.runtime.io_thread import Thread
from coordinator.runtime.promise import Promise
from protocol.errors import FrameTooLarge, Truncated
from protocol.fixed import int32_at

T = TypeVar("T")

Change: TypeAlias = Callable[[bytes], bytes]
"""(a whole answer with its length) -> what is sent in its place. Raises ProtocolError, IndexError, struct.error."""

LONG_BYTES: Final = 2 * 1024
"""What is shorter is done at once: the dearest, 2,000 groups without a name, takes 15 ms."""


class Offloader:
    """Does work at once where it is short, and else in the thread, which starts with the first long work."""

    def __init__(self, start: Callable[[], Thread]) -> None:
        self._start = start
        self._started: Thread | None = None
        self.has_run = False
        """Whether `run` has used the thread since this was last reset."""

    def close(self) -> None:
        """Finish what is under way."""
        if self._started is not None:
            self._started.close()

    async def run(self, session: ClientSession, work: Callable[[], T], *, is_long: bool) -> T:
        """Do the work and return its result; long work is done in the thread. Raises whatever the work raises."""
        if not is_long:
            return work()
        self.has_run = True
        promise: Promise[T] = Promise(session.go_on)
        self.submit(work, promise.resolve)
        return await promise

    def submit(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None] = lambda _: None
    ) -> None:
        """Do the work in the thread, then call `done` on the event loop with its result or exception."""
        if self._started is None:
            self._started = self._start()
        self._started.submit(work, done)

    def rewriting(self, change: Change) -> Rewrite:
        """Rewrite an answer by `change` once all of it is there; a long one waits while that is done."""

        def rewrite(session: ClientSession, frame: bytes) -> Rewriting:
            size = LENGTH_BYTES + int32_at(frame, 0)
            if size > COLLECTED_BYTES_MAX:
                raise FrameTooLarge(f"an answer of {size} bytes cannot be rewritten")
            if len(frame) < size:
                return None
            if size <= LONG_BYTES:
                return changed(change, frame)
            return self.run(session, partial(changed, change, frame), is_long=True)

        return rewrite


def changed(change: Change, frame: bytes) -> tuple[bytes, int]:
    """Rewrite a whole answer by `change`. Raises what that raises, and Truncated where the answer ends too early."""
    try:
        made = change(frame)
    except (IndexError, struct.error):
        raise Truncated("an answer") from None
    return UNCHANGED if made is frame else (made, len(frame))


def is_long(frame: bytes) -> bool:
    """Whether work on this request or answer is done in the thread."""
    return len(frame) > LONG_BYTES
