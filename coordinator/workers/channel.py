# SPDX-License-Identifier: Apache-2.0
"""The socket between a supervisor and a process of its own: MessagePack in frames with a length, in order."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar, cast

import msgspec

from coordinator.workers.path_hooks import decode_path, encode_path
from protocol.errors import ProtocolError
from protocol.framing import LENGTH_BYTES, FrameReader

Received = TypeVar("Received")

MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
"""The longest message. Topics are sent in pieces of some 64 KB, so the longest grows with the partitions of one topic,
or of `__consumer_offsets`: 100,000 partitions take less than a megabyte."""


NO_MESSAGE: Final = (ProtocolError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of bytes that are no message: a bad length, bad MessagePack, text that is not UTF-8, deep nesting."""


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=encode_path)


def encode(message: msgspec.Struct) -> bytes:
    """Return an encoded message with its length before it."""
    body = _ENCODER.encode(message)
    if len(body) > MESSAGE_BYTES_MAX:
        raise ValueError(f"a {type(message).__name__} of {len(body)} bytes, more than {MESSAGE_BYTES_MAX}")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Channel(asyncio.Protocol, Generic[Received]):
    """One end of the socket between the supervisor and a worker, or an operator's command.

    `on_message` gets each message in turn; `on_lost` is called with the reason once the other end is gone, or has sent
    bytes that are no message.
    """

    def __init__(
        self,
        kind: object,
        on_message: Callable[[Received], None],
        on_lost: Callable[[str], None],
        *,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        """`kind` is the type of the messages that come, a union of Structs."""
        self._decoder: msgspec.msgpack.Decoder[Received] = msgspec.msgpack.Decoder(kind, dec_hook=decode_path)
        self._on_message = on_message
        self._on_lost = on_lost
        self._frames = FrameReader(message_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._problem = "the other end closed the connection"
        self.was_nonsense = False
        """True if the other end has sent bytes that are no message."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass whole messages to `on_message`."""
        for message in self._decoded(data):
            self._on_message(message)

    def _decoded(self, data: bytes) -> Iterator[Received]:
        try:
            for frame in self._frames.feed(data):
                yield self._decoder.decode(frame)
            if self._frames.failure is not None:
                raise self._frames.failure
        except NO_MESSAGE as error:
            self.was_nonsense = True
            self._problem = f"the other end sent what is no message: {error}"
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the other end is gone."""
        self._transport = None
        self._room.set()
        self._on_lost(self._problem if exc is None else str(exc))

    def send(self, message: msgspec.Struct) -> None:
        """Send one message; it is lost once the other end is gone."""
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        """Send an encoded message."""
        if self._transport is not None:
            self._transport.write(frame)

    @property
    def is_open(self) -> bool:
        """True if the other end is connected."""
        return self._transport is not None

    async def wait_until_writable(self) -> None:
        """Return once the other end has read enough for more to be sent, or is gone."""
        await self._room.wait()

    def pause_writing(self) -> None:
        """Hold `wait_until_writable` back until the other end has read more."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let `wait_until_writable` return, because the other end has read enough."""
        self._room.set()

    def close(self) -> None:
        """Send the remaining messages and close the socket."""
        if self._transport is not None:
            self._transport.close()
