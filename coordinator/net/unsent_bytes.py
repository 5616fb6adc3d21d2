# SPDX-License-Identifier: Apache-2.0
"""The unsent responses of one connection, in bytes."""

import asyncio
from collections import deque

from coordinator.api.context import RequestContext
from coordinator.net.response_budget import ResponseBudget
from coordinator.telemetry.stats import Stats
from protocol.headers import encode_response_frame_head


class UnsentBytes:
    """Counts the bytes of responses that the peer has not taken, also in the budget of all connections.

    A response counts from when it is made until it is written to a transport that has room. The bytes that a full
    transport holds still count, as of the last call of `update_buffered_bytes`. Long responses wait here in pieces
    while the transport is full, because a transport copies all that it holds in one turn of the event loop.
    """

    __slots__ = (
        "_budget",
        "_pieces_from_bytes",
        "_stats",
        "_unwritten",
        "answers_bytes",
        "buffered_bytes",
        "is_full",
    )

    def __init__(self, budget: ResponseBudget, stats: Stats, pieces_from_bytes: int) -> None:
        """Keep responses longer than `pieces_from_bytes` in pieces."""
        self._budget = budget
        self._stats = stats
        self._pieces_from_bytes = pieces_from_bytes
        self._unwritten: deque[bytes] = deque()  # pieces that wait for the transport to have room
        self.answers_bytes = 0
        """The bytes of responses that were not given to the transport yet."""
        self.buffered_bytes = 0
        """The bytes that the transport holds, since it is full."""
        self.is_full = False

    def set_response(self, ctx: RequestContext, frame: bytes, rest: list[bytes] | None) -> None:
        """Set or replace the response of a request; `rest` has the pieces of a long response that follow `frame`."""
        count = len(frame)
        if rest is not None:
            count += count_piece_bytes(rest)
        if ctx.frame is not None:
            self._replaced(len(ctx.frame) + count_piece_bytes(ctx.rest))
        self.answers_bytes += count
        self._budget.add_unsent_bytes(count)
        ctx.frame = frame
        ctx.rest = rest

    def put_pieces(self, ctx: RequestContext, body: list[bytes]) -> None:
        """Set the response of a request from the pieces of its body, which are joined unless they are long."""
        size = count_piece_bytes(body)
        head = encode_response_frame_head(ctx.correlation_id, size, ctx.api.flexible_response)
        if size <= self._pieces_from_bytes:
            self.set_response(ctx, b"".join([head, *body]), None)
        else:
            self.set_response(ctx, head, body)

    def _replaced(self, count: int) -> None:
        """Remove `count` bytes of a response that another response replaces."""
        self.answers_bytes -= count
        self._budget.remove_unsent_bytes(count)

    def write(self, transport: asyncio.Transport, out: list[bytes]) -> None:
        """Write responses to the transport, in one piece unless they are long.

        The pieces of longer ones are given to it while it has room, and by `write_on` when it has room again.
        """
        if self._unwritten:
            self._unwritten.extend(out)
        elif len(out) == 1:
            self._write_piece(transport, out[0])
        elif count_piece_bytes(out) <= self._pieces_from_bytes:
            self._write_piece(transport, b"".join(out))
        else:
            self._unwritten.extend(out)
            self.write_on(transport)

    def write_on(self, transport: asyncio.Transport) -> None:
        """Write the pieces that wait, as long as the transport has room."""
        while self._unwritten and not self.is_full:
            self._write_piece(transport, self._unwritten.popleft())

    @property
    def is_written_to_transport(self) -> bool:
        """True if everything was written to the transport."""
        return not self._unwritten

    @property
    def bytes_not_yet_sent(self) -> int:
        """The bytes that the transport holds, as of the last `update_buffered_bytes`, and those that wait for it."""
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
            self._budget.remove_unsent_bytes(count)

    def update_buffered_bytes(self, kept_bytes: int) -> bool:
        """Update how many bytes the full transport holds; return whether they have become fewer."""
        known_bytes, self.buffered_bytes = self.buffered_bytes, kept_bytes
        if kept_bytes < known_bytes:
            self._budget.remove_unsent_bytes(known_bytes - kept_bytes)
            return True
        self._budget.add_unsent_bytes(kept_bytes - known_bytes)
        return False

    def note_transport_emptied(self) -> None:
        """Note that the transport has room again, or is closed."""
        self.is_full = False
        kept_bytes, self.buffered_bytes = self.buffered_bytes, 0
        self._budget.remove_unsent_bytes(kept_bytes)

    def drop_answers(self) -> None:
        """Drop the responses that were not written to the transport."""
        self._unwritten.clear()
        count, self.answers_bytes = self.answers_bytes, 0
        self._budget.remove_unsent_bytes(count)


def count_piece_bytes(pieces: list[bytes] | None) -> int:
    """Return the number of bytes of all pieces of a response."""
    return 0 if pieces is None else sum([len(piece) for piece in pieces])
