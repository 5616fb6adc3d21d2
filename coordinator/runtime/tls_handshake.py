# SPDX-License-Identifier: Apache-2.0
"""TLS handshakes of sockets that no transport of asyncio owns."""

import asyncio
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Callable


async def shake_hands(loop: AbstractEventLoop, sock: ssl.SSLSocket, timeout_s: float) -> None:
    """Complete the TLS handshake of a connected, non-blocking socket within `timeout_s`.

    Raises OSError, TimeoutError among them.
    """
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                sock.do_handshake()
            except ssl.SSLWantReadError:
                await _ready(loop, loop.add_reader, loop.remove_reader, sock.fileno())
            except ssl.SSLWantWriteError:
                await _ready(loop, loop.add_writer, loop.remove_writer, sock.fileno())
            else:
                return


async def _ready(
    loop: AbstractEventLoop, add: Callable[..., None], remove: Callable[[int], bool], descriptor: int
) -> None:
    ready: asyncio.Future[None] = loop.create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, is_ready)
    try:
        await ready
    finally:
        remove(descriptor)
