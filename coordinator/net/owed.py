# SPDX-License-Identifier: Apache-2.0
"""What one connection owes its peer, in bytes."""

import asyncio
from collections import deque

from coordinator.api.context import RequestContext
from coordinator.net.budget import Unsent
from coordinator.telemetry.stats import Stats
from protocol.headers import response_head


class Owed:
    """Counts the answers that the peer has not taken, and counts them into the budget of all connections.

    An answer is owed from when it is made until it is given to a transport that has room. What a full transport keeps
    is counted on; it says how much that is only when it is asked (`settle`). Long answers wait here in pieces while the
    transport is full: it would copy what it keeps, all of it in one turn of the event loop.
    """

    __slots__ = (
        "_pieces_from_bytes",
        "_stats",
        "_unsent",
        "_unwritten",
        "answers_bytes",
        "buffered_bytes",
        "is_full",
    )

    def __init__(self, unsent: Unsent, stats: Stats, pieces_from_bytes: int) -> None:
        """Answers above `pieces_from_bytes` are not joined."""
        self._unsent = unsent
        self._stats = stats
        self._pieces_from_bytes = pieces_from_bytes
        self._unwritten: deque[bytes] = deque()  # pieces that wait for the transport to have room
        self.answers_bytes = 0
        """Of answers that were not given to the transport yet."""
        self.buffered_bytes = 0
        """Of those that it keeps, since it is full."""
        self.is_full = False

    def put(self, ctx: RequestContext, frame: bytes, rest: list[bytes] | None) -> None:
        """Give a request its answer, in place of one that it may have; `rest` follows the frame of a long one."""
        count = len(frame)
        if rest is not None:
            count += size_of(rest)
        if ctx.frame is not None:
            self._replaced(len(ctx.frame) + size_of(ctx.rest))
        self.answers_bytes += count
        self._unsent.add(count)
        ctx.frame = frame
        ctx.rest = rest

    def put_pieces(self, ctx: RequestContext, body: list[bytes]) -> None:
        """Give a request its answer, whose body is in pieces; they are joined where that does not take too long."""
        size = size_of(body)
        head = response_head(ctx.correlation_id, size, ctx.api.flexible_response)
        if size <= self._pieces_from_bytes:
            self.put(ctx, b"".join([head, *body]), None)
        else:
            self.put(ctx, head, body)

    def _replaced(self, count: int) -> None:
        """Answers of so many bytes will not be sent: others take their place."""
        self.answers_bytes -= count
        self._unsent.remove(count)

    def write(self, transport: asyncio.Transport, out: list[bytes]) -> None:
        """Give answers to the transport, in one piece where joining them does not take too long.

        The pieces of longer ones are given to it while it has room, and by `write_on` when it has room again.
        """
        if self._unwritten:
            self._unwritten.extend(out)
        elif len(out) == 1:
            self._write_piece(transport, out[0])
        elif size_of(out) <= self._pieces_from_bytes:
            self._write_piece(transport, b"".join(out))
        else:
            self._unwritten.extend(out)
            self.write_on(transport)

    def write_on(self, transport: asyncio.Transport) -> None:
        """Give the transport the pieces that wait for it, as long as it has room."""
        while self._unwritten and not self.is_full:
            self._write_piece(transport, self._unwritten.popleft())

    @property
    def is_written(self) -> bool:
        """Whether the transport has all that was to be written."""
        return not self._unwritten

    @property
    def unread_bytes(self) -> int:
        """What the transport keeps, as far as that is known, and what waits for it."""
        return self.buffered_bytes + sum(map(len, self._unwritten))

    def _write_piece(self, transport: asyncio.Transport, data: bytes) -> None:
        self._written(len(data))
        self._stats.bytes_sent += len(data)
        transport.write(data)

    def _written(self, count: int) -> None:
        self.answers_bytes -= count
        if self.is_full:
            self.buffered_bytes += count
        else:
            self._unsent.remove(count)

    def settle(self, kept_bytes: int) -> bool:
        """The full transport keeps so many bytes; returns whether that is less than was known."""
        known_bytes, self.buffered_bytes = self.buffered_bytes, kept_bytes
        if kept_bytes < known_bytes:
            self._unsent.remove(known_bytes - kept_bytes)
            return True
        self._unsent.add(kept_bytes - known_bytes)
        return False

    def emptied(self) -> None:
        """The transport has room again, or is gone."""
        self.is_full = False
        kept_bytes, self.buffered_bytes = self.buffered_bytes, 0
        self._unsent.remove(kept_bytes)

    def drop_answers(self) -> None:
        """The answers that the transport has not got will never be given to it."""
        self._unwritten.clear()
        count, self.answers_bytes = self.answers_bytes, 0
        self._unsent.remove(count)


def size_of(pieces: list[bytes] | None) -> int:
    """How many bytes the pieces of an answer have together."""
    return 0 if pieces is None else sum([len(piece) for piece in pieces])
