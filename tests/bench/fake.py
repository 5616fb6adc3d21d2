# SPDX-License-Identifier: Apache-2.0
"""A server for tests of the driver: it answers every request with bytes that the test chooses."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bench.cluster import Address
from bench.load import Prepared
from bench.wire import BadReply

# Takes a request's correlation id and returns what to write, whole frames or not; None hangs up.
Answer = Callable[[int], bytes | None]

GOOD_BODY = b"good"
REQUEST = struct.pack(">ihhi", 16, 12, 4, 0) + b"a request"[:8]


def reply(correlation_id: int, body: bytes = GOOD_BODY) -> bytes:
    """A reply frame."""
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def judge(answer: bytes) -> None:
    """Finds only GOOD_BODY good."""
    if answer[4:] != GOOD_BODY:
        raise BadReply(f"bad body {answer[4:]!r}")


def prepared() -> Prepared:
    """A request as the fake server understands it, and the judge of its reply."""
    return Prepared(REQUEST, judge)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Address]:
    """Answer every request on a free loopback port."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readexactly(len(REQUEST))
                answered = answer(struct.unpack_from(">i", request, 8)[0])
                if answered is None:
                    break
                writer.write(answered)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the driver is done
        finally:
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    async with server:
        yield Address(*server.sockets[0].getsockname())
