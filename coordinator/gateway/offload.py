# SPDX-License-Identifier: Apache-2.0
"""Work on long requests and responses in a thread next to the event loop, so that other clients go on meanwhile.

A request may name 50,000 groups or topics: to decode it, to check what its client may do, and to make the request or
response that is sent takes some tenths of a second. The state of the connection that this needs does not change in that
time, since the connection's next request is taken only afterwards.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from coordinator.gateway.routing_types import (
    COLLECTED_BYTES_MAX,
    LENGTH_BYTES,
    UNCHANGED,
    ClientSession,
    Rewrite,
    Rewriting,
)
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.runtime.promise import Promise
from protocol.errors import FrameTooLarge, Truncated
from protocol.fixed_integers import int32_at

T = TypeVar("T")

Change: TypeAlias = Callable[[bytes], bytes]
"""(a whole response with its length) -> the response to send. Raises ProtocolError, IndexError, struct.error."""

LONG_BYTES: Final = 2 * 1024
"""The length up to which work is done at once: the most expensive, 2,000 groups without a name, takes 15 ms."""


class Offloader:
    """Does short work at once, and long work in the thread, which starts with the first long work."""

    def __init__(self, start: Callable[[], BlockingCallThread]) -> None:
        self._start = start
        self._started: BlockingCallThread | None = None
        self.has_run = False
        """True if `run` has used the thread since the flag was last reset."""

    def close(self) -> None:
        """Finish the work that is under way."""
        if self._started is not None:
            self._started.close()

    async def run(self, session: ClientSession, work: Callable[[], T], *, is_long: bool) -> T:
        """Do the work and return its result; long work is done in the thread. Raises whatever the work raises."""
        if not is_long:
            return work()
        self.has_run = True
        promise: Promise[T] = Promise(session.go_on)
        self.submit_with_callback(work, promise.resolve)
        return await promise

    def submit_with_callback(
        self, work: Callable[[], T], done: Callable[[T | BaseException], None] = lambda _: None
    ) -> None:
        """Do the work in the thread, then call `done` on the event loop with its result or exception."""
        if self._started is None:
            self._started = self._start()
        self._started.submit_with_callback(work, done)

    def make_rewriter(self, change: Change) -> Rewrite:
        """Return a rewriter that calls `change` once a response is complete; a long response waits for the thread."""

        def rewrite(session: ClientSession, frame: bytes) -> Rewriting:
            size = LENGTH_BYTES + int32_at(frame, 0)
            if size > COLLECTED_BYTES_MAX:
                raise FrameTooLarge(f"an answer of {size} bytes cannot be rewritten")
            if len(frame) < size:
                return None
            if size <= LONG_BYTES:
                return apply_change_to_whole_response(change, frame)
            return self.run(session, partial(apply_change_to_whole_response, change, frame), is_long=True)

        return rewrite


def apply_change_to_whole_response(change: Change, frame: bytes) -> tuple[bytes, int]:
    """Rewrite a whole response by `change`. Raises what `change` raises, and Truncated if the response is cut."""
    try:
        made = change(frame)
    except (IndexError, struct.error):
        raise Truncated("an answer") from None
    return UNCHANGED if made is frame else (made, len(frame))


def is_long(frame: bytes) -> bool:
    """Return whether work on this request or response is done in the thread."""
    return len(frame) > LONG_BYTES
