# SPDX-License-Identifier: Apache-2.0
"""The closed loop: connections that keep a number of prepared requests under way, and count what comes back.

All that costs is done before: a request is a frame whose correlation id is patched at each send, and a reply
that equals, byte for byte, one that was decoded and found good is good without decoding.
"""

import asyncio
import gc
import itertools
import resource
import struct
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, cast

from bench.cluster import Address
from bench.procstat import tree_cpu_s
from bench.wire import CORRELATION_ID_AT, BadReply

HEAD: Final = struct.Struct(">iI")  # a reply's length and correlation id
CORRELATION_ID: Final = struct.Struct(">I")
MAX_REPLY_BYTES: Final = 64 << 20

Judge = Callable[[bytes], None]  # takes a reply without its length bytes; raises BadReply


class Prepared:
    """A request ready to be sent any number of times, and what is known of its good reply."""

    __slots__ = ("frame", "good", "good_length", "judge")

    def __init__(self, frame: bytes, judge: Judge) -> None:
        self.frame = bytearray(frame)
        self.judge = judge
        self.good = b""  # a good reply from behind its correlation id on
        self.good_length = -1  # its announced length

    def examine(self, reply: bytes) -> None:
        """Decode a reply that is not the known good one and remember it when it is good. Raises BadReply."""
        self.judge(reply)
        self.good = reply[4:]
        self.good_length = len(reply)


class Source(Protocol):
    """Decides what a connection sends."""

    def first(self) -> Prepared | None:
        """One more request to open the window with; None for no more."""

    def following(self, answered: Prepared, good: bool) -> Prepared | None:
        """What to send after an answer; None for nothing."""

    def stop(self) -> None:
        """Send nothing new from now on."""


class Repeat:
    """A source that goes through a sequence again and again, up to `limit` requests or until `stop`."""

    def __init__(self, sequence: Sequence[Prepared], limit: int | None = None) -> None:
        self._next = itertools.cycle(sequence).__next__
        self._left = 1 << 62 if limit is None else limit

    def first(self) -> Prepared | None:
        """The next of the sequence."""
        if self._left <= 0:
            return None
        self._left -= 1
        return self._next()

    def following(self, answered: Prepared, good: bool) -> Prepared | None:
        """The next of the sequence, whatever the answer was."""
        if self._left <= 0:
            return None
        self._left -= 1
        return self._next()

    def stop(self) -> None:
        """Send nothing new from now on."""
        self._left = 0


class Tally:
    """What all connections of a run have counted since the last `restart`; errors are kept over it."""

    def __init__(self) -> None:
        self.latencies_s = array("d")  # one for each request answered well
        self.errors: Counter[str] = Counter()

    def restart(self) -> None:
        """Begin a new window."""
        del self.latencies_s[:]

    def error(self, reason: str, count: int = 1) -> None:
        """Count something that went wrong."""
        self.errors[reason] += count


class Connection(asyncio.Protocol):
    """One pipelined connection. Kafka answers a connection's requests in order; all else is an error."""

    def __init__(self, source: Source, depth: int, tally: Tally) -> None:
        self._source = source
        self._depth = depth
        self._tally = tally
        self._waiting: deque[tuple[Prepared, float]] = deque()
        self._rest = b""
        self._next_id = 1  # of the next request
        self._expected_id = 1  # of the next reply
        self._transport: asyncio.WriteTransport  # from connection_made on
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; nothing is sent before `open_window`."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's own class, no subclass of it

    def open_window(self) -> None:
        """Send the first requests."""
        opening = [self._source.first() for _ in range(self._depth)]
        self._send([request for request in opening if request is not None], time.perf_counter())
        self._finish_if_idle()

    def data_received(self, data: bytes) -> None:
        """Check every whole reply and send what follows it, all in one write."""
        # Latency counts from this moment to the read that brings the reply: it includes our own work.
        now = time.perf_counter()
        if self._rest:
            data = self._rest + data
        size, at = len(data), 0
        waiting, following = self._waiting, self._source.following
        served = self._tally.latencies_s.append
        send: list[Prepared] = []
        while size - at >= 8:
            length, correlation_id = HEAD.unpack_from(data, at)
            if not waiting or correlation_id != self._expected_id or not 4 <= length <= MAX_REPLY_BYTES:
                self._abort(
                    f"reply to request {correlation_id} ({length} bytes), expected {self._expected_id}"
                )
                return
            end = at + 4 + length
            if end > size:
                break
            self._expected_id = (correlation_id + 1) & 0x7FFFFFFF
            request, sent_at = waiting.popleft()
            good = length == request.good_length and data.startswith(request.good, at + 8)
            if not good:
                good = self._examine(request, data[at + 4 : end])
            if good:
                served(now - sent_at)
            at = end
            after = following(request, good)
            if after is not None:
                send.append(after)
        self._rest = data[at:] if at < size else b""
        self._send(send, now)
        self._finish_if_idle()

    def connection_lost(self, error: Exception | None) -> None:
        """Count what stays unanswered."""
        if not self.finished.done():
            self._give_up(f"connection lost: {error or 'closed by the server'}")

    def stop(self) -> None:
        """Send nothing new; `finished` is done once all is answered."""
        self._source.stop()
        self._finish_if_idle()

    def close(self, waited_s: float) -> None:
        """Close the connection; whatever is still unanswered, after this time, counts as errors."""
        if not self.finished.done():
            self._give_up(f"no answer within {waited_s:g} s")
        self._transport.close()

    def _send(self, requests: Sequence[Prepared], now: float) -> None:
        out = bytearray()
        waiting, next_id = self._waiting, self._next_id
        for request in requests:
            frame = request.frame
            CORRELATION_ID.pack_into(frame, CORRELATION_ID_AT, next_id)
            out += frame
            waiting.append((request, now))
            next_id = (next_id + 1) & 0x7FFFFFFF
        self._next_id = next_id
        if out:
            self._transport.write(out)

    def _examine(self, request: Prepared, reply: bytes) -> bool:
        try:
            request.examine(reply)
        except BadReply as bad:
            self._tally.error(str(bad))
            return False
        return True

    def _finish_if_idle(self) -> None:
        if not self._waiting and not self.finished.done():
            self.finished.set_result(None)

    def _abort(self, reason: str) -> None:
        self._tally.error(reason)
        self._give_up("unanswered after a bad reply")
        self._transport.abort()

    def _give_up(self, reason: str) -> None:
        # A connection that is gone is an error even when nothing was under way on it.
        self._source.stop()
        self._tally.error(reason, max(1, len(self._waiting)))
        self._waiting.clear()
        self.finished.set_result(None)


class Lane(NamedTuple):
    """What one connection does."""

    address: Address
    source: Source


@dataclass(frozen=True, slots=True)
class Window:
    """How long to measure: `duration_s` after `warmup_s` of the same load, or until the sources end."""

    warmup_s: float = 0.0
    duration_s: float | None = None
    timeout_s: float = 600.0  # of a run whose sources end by themselves
    drain_s: float = 30.0  # for the answers to what was asked before the end


@dataclass(slots=True)
class Measured:
    """What one run measured. CPU is user and system time."""

    seconds: float
    latencies_s: Sequence[float]
    driver_cpu_s: float
    server_cpu_s: float | None
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def requests(self) -> int:
        """Requests answered well."""
        return len(self.latencies_s)


class _Instant(NamedTuple):
    at: float
    driver_cpu_s: float
    server_cpu_s: float | None

    @classmethod
    def now(cls, server_pids: Sequence[int]) -> "_Instant":
        own = resource.getrusage(resource.RUSAGE_SELF)
        server = sum(tree_cpu_s(pid) for pid in server_pids) if server_pids else None
        return cls(time.perf_counter(), own.ru_utime + own.ru_stime, server)


async def run(lanes: Sequence[Lane], depth: int, window: Window, server_pids: Sequence[int] = ()) -> Measured:
    """Play the lanes and measure. Raises OSError without a connection or a server process."""
    tally = Tally()
    loop = asyncio.get_running_loop()
    # An exception in a callback would otherwise only be printed, and the numbers would look fine.
    loop.set_exception_handler(partial(_count_exception, tally))
    connections: list[Connection] = []
    try:
        for lane in lanes:
            connection = Connection(lane.source, depth, tally)
            await loop.create_connection(partial(_itself, connection), *lane.address)
            connections.append(connection)
        # The prepared frames live to the end: nothing is won by letting the collector look at them.
        gc.collect()
        gc.freeze()
        return await _measure(connections, tally, window, server_pids)
    finally:
        for connection in connections:
            connection.close(0.0)
        gc.unfreeze()


def _count_exception(tally: Tally, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    tally.error(f"exception in the driver: {context.get('exception') or context['message']!r}")


def _itself(connection: Connection) -> Connection:
    return connection


async def _measure(
    connections: Sequence[Connection], tally: Tally, window: Window, server_pids: Sequence[int]
) -> Measured:
    all_finished = asyncio.ensure_future(asyncio.wait([connection.finished for connection in connections]))
    began = _Instant.now(server_pids)
    for connection in connections:
        connection.open_window()
    if window.duration_s is None:
        await asyncio.wait([all_finished], timeout=window.timeout_s)
    else:
        await asyncio.wait([all_finished], timeout=window.warmup_s)
        tally.restart()
        began = _Instant.now(server_pids)
        await asyncio.wait([all_finished], timeout=window.duration_s)
    ended = _Instant.now(server_pids)
    latencies_s = array("d", tally.latencies_s)  # what comes in from here on is outside the window
    for connection in connections:
        connection.stop()
    await asyncio.wait([all_finished], timeout=window.drain_s)
    all_finished.cancel()
    for connection in connections:
        connection.close(window.drain_s)
    return Measured(
        seconds=ended.at - began.at,
        latencies_s=latencies_s,
        driver_cpu_s=ended.driver_cpu_s - began.driver_cpu_s,
        server_cpu_s=_difference(ended.server_cpu_s, began.server_cpu_s),
        errors=tally.errors,
    )


def _difference(ended: float | None, began: float | None) -> float | None:
    return None if ended is None or began is None else ended - began
