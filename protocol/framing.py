# SPDX-License-Identifier: Apache-2.0
"""Cuts a stream of bytes into Kafka's frames: an int32 length, then that many bytes. Does no I/O."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from protocol.bounds import SMALL_FRAME_BYTES
from protocol.errors import FrameTooLarge, InvalidLength, ProtocolError
from protocol.fixed_integers import int16_at, int32_at
from protocol.non_kafka import find_other_protocol_error

LENGTH_BYTES: Final = 4
API_KEY_BYTES: Final = 2
_NO_BOUNDS: Final[Mapping[int, int]] = MappingProxyType({})


class FrameReader:
    """Collects the bytes that a connection receives, and returns the frames that are complete.

    It holds the received bytes of one frame: a length that is only announced takes no memory.
    """

    __slots__ = ("_bounds", "_buffer", "_failed", "_max_frame_bytes", "_small_bytes", "_wanted_bytes")

    def __init__(self, max_frame_bytes: int, bounds: Mapping[int, int] = _NO_BOUNDS) -> None:
        """Refuse frames whose body is longer than `max_frame_bytes` (Kafka's socket.request.max.bytes).

        Requests of an API in `bounds` may be no longer than its bound.
        """
        self._max_frame_bytes = max_frame_bytes
        self._bounds = bounds
        self._small_bytes = min(max_frame_bytes, SMALL_FRAME_BYTES) if bounds else max_frame_bytes
        self._buffer = bytearray()
        self._wanted_bytes = LENGTH_BYTES  # nothing can be cut from the buffer before it holds this many
        self._failed: ProtocolError | None = None

    @property
    def buffered_bytes(self) -> int:
        """The number of bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies of the frames that `data` completes, in order, without their length.

        A bad length ends the stream: the call raises InvalidLength for zero or less (Kafka closes the connection),
        FrameTooLarge above the limit, and NotKafka if the length is the beginning of another protocol. The four bytes
        of the length are enough for that, or, for the bound of an API, those up to the API key.
        Frames before the bad length in the same `data` are returned first; then the next call raises, and every later
        one. `failure` has the error at once.
        """
        if self._failed is not None:
            raise self._failed
        buffer = self._buffer
        if buffer:
            buffer += data
            wanted_bytes = self._wanted_bytes
            if len(buffer) < wanted_bytes:
                return []
            if wanted_bytes > LENGTH_BYTES + API_KEY_BYTES:
                # Its length was checked before the rest arrived: a long frame is copied once.
                frame = bytes(memoryview(buffer)[LENGTH_BYTES:wanted_bytes])
                rest = bytes(memoryview(buffer)[wanted_bytes:])
                buffer.clear()
                return self._cut(rest, [frame])
            data = bytes(buffer)
            buffer.clear()
        return self._cut(data, [])

    @property
    def failure(self) -> ProtocolError | None:
        """The error that ended the stream, else None."""
        return self._failed

    def _cut(self, data: bytes, frames: list[bytes]) -> list[bytes]:
        """Add the whole frames of `data` to `frames`, and buffer the bytes behind them."""
        pos = 0
        size = len(data)
        while size - pos >= LENGTH_BYTES:
            length = int32_at(data, pos)
            if not 0 < length <= self._small_bytes:
                if not 0 < length <= self._max_frame_bytes:
                    self._fail(length, self._max_frame_bytes, "", has_frames=bool(frames))
                    return frames
                if size - pos < LENGTH_BYTES + API_KEY_BYTES:
                    self._keep(data[pos:], LENGTH_BYTES + API_KEY_BYTES)
                    return frames
                api_key = int16_at(data, pos + LENGTH_BYTES)
                bound = self._bounds.get(api_key, self._max_frame_bytes)
                if length > bound:
                    self._fail(length, bound, f" of api key {api_key}", has_frames=bool(frames))
                    return frames
            end = pos + LENGTH_BYTES + length
            if end > size:
                self._keep(data[pos:], LENGTH_BYTES + length)
                return frames
            frames.append(data[pos + LENGTH_BYTES : end])
            pos = end
        if pos < size:
            self._keep(data[pos:], LENGTH_BYTES)
        return frames

    def _keep(self, rest: bytes, wanted_bytes: int) -> None:
        self._buffer += rest
        self._wanted_bytes = wanted_bytes

    def _fail(self, length: int, limit: int, what: str, *, has_frames: bool) -> None:
        known = find_other_protocol_error(length)
        if known is not None:
            self._failed = known
        elif length <= 0:
            self._failed = InvalidLength(f"a frame of {length} bytes")
        else:
            self._failed = FrameTooLarge(f"a frame{what} of {length} bytes; the limit is {limit}")
        if not has_frames:
            raise self._failed
