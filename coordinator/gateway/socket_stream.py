# SPDX-License-Identifier: Apache-2.0
"""One socket of a gateway: it is read into a buffer that the process shares, and written to without a delay.

asyncio's transports copy what they read, and write it a turn later; a gateway passes on what it reads within the call,
so it needs neither. Bytes that a socket does not take at once are copied and wait. While bytes wait the stream is full,
and the side that writes to it is read no further.
"""

import ssl
from asyncio import AbstractEventLoop, Handle
from collections import deque
from socket import socket
from typing import Final

from coordinator.gateway.routing_types import Bytes
from coordinator.gateway.session import READ_BYTES
from coordinator.runtime.sockets import shut_down_writing
from protocol.mypyc_shim import mypyc_attr, trait

ENDS_AT_ONCE: Final = 100
"""The number of streams that end in one turn of the event loop: a host that dies closes thousands at once."""
LINGER_S: Final = 5.0
"""The seconds within which an ended stream has to send its waiting bytes and see its peer close."""
_MEANWHILE: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@mypyc_attr(allow_interpreted_subclasses=True)
@trait
class StreamOwner:
    """The owner of streams, which they call."""

    def receive_bytes(self, stream: "SocketStream", data: memoryview) -> None:
        """Take data that was read, before the call returns: its buffer is used again."""

    def note_all_sent(self, stream: "SocketStream") -> None:
        """Go on, as nothing waits to be sent any more."""

    def on_stream_lost(self, stream: "SocketStream") -> None:
        """Note that the peer has closed or is lost; called once, and not for a stream that the owner has ended."""

    def note_socket_closed(self, stream: "SocketStream") -> None:
        """Note that the socket is closed, or that there was none; called once for every stream."""


class EndedStreamCloser:
    """Closes streams whose peers have closed and notifies their owners, a few in each turn of the event loop."""

    __slots__ = ("_loop", "_streams")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._streams: deque[SocketStream] = deque()

    def close_and_notify_owner_soon(self, stream: "SocketStream") -> None:
        """Close this stream in a later turn of the event loop, and notify its owner."""
        self._streams.append(stream)
        if len(self._streams) == 1:
            self._loop.call_soon(self._notify)

    def _notify(self) -> None:
        for _ in range(min(len(self._streams), ENDS_AT_ONCE)):
            self._streams.popleft().close_after_loss()
        if self._streams:
            self._loop.call_soon(self._notify)


class SocketStream:
    """A socket, connected or to be connected, and the bytes that wait to be written to it."""

    __slots__ = (
        "_buffer",
        "_ending",
        "_ends",
        "_is_read",
        "_is_writing",
        "_linger",
        "_loop",
        "_owner",
        "_tls",
        "_waiting",
        "_wanted_bytes",
        "is_gone",
        "sent_bytes",
        "sock",
    )

    def __init__(
        self, loop: AbstractEventLoop, owner: StreamOwner, buffer: memoryview, ends: EndedStreamCloser
    ) -> None:
        """Read into `buffer`, which all sockets of the process share, and report the end through `ends`."""
        self._loop = loop
        self._ends = ends
        self._owner: StreamOwner | None = owner  # None if the stream is gone
        self._buffer = buffer
        self.sock: socket | None = None
        self._waiting: deque[memoryview] = deque()
        self._wanted_bytes = 0
        self._is_read = False
        self._is_writing = False
        self._tls: ssl.SSLSocket | None = None
        self._ending = False
        self._linger: Handle | None = None
        self.is_gone = False
        self.sent_bytes = 0
        """The number of queued bytes that have been sent."""

    def use_socket(self, sock: socket, send_first: bytes = b"") -> None:
        """Use this connected socket, after its TLS handshake, and send `send_first` before all waiting bytes."""
        if self.is_gone:
            sock.close()
            return
        self.sock = sock
        if send_first:
            self._waiting.appendleft(memoryview(send_first))
        if isinstance(sock, ssl.SSLSocket):
            self._tls = sock
        if self._ending:
            self._linger_on()
        if self._waiting:
            self._flush()
        elif not self._ending and self._owner is not None:
            self._owner.note_all_sent(self)
        self._update_reading()

    @property
    def is_write_blocked(self) -> bool:
        """True if bytes wait to be sent, or there is no connection yet."""
        return bool(self._waiting) or self.sock is None

    @property
    def waiting_bytes(self) -> int:
        """The bytes that wait to be sent."""
        return sum(map(len, self._waiting))

    # --- reading ---

    def set_wanted_bytes(self, wanted_bytes: int) -> None:
        """Set how many bytes the owner wants at a time; with 0 nothing is read."""
        if self._wanted_bytes != wanted_bytes:
            self._wanted_bytes = wanted_bytes
            self._update_reading()

    def _update_reading(self) -> None:
        wanted = self._wanted_bytes > 0 or self._ending
        if self.sock is None or self._is_read == wanted:
            return
        self._is_read = wanted
        if wanted:
            self._loop.add_reader(self.sock.fileno(), self._readable)
            if self._tls is not None and self._tls.pending():
                self._loop.call_soon(self._readable)
        else:
            self._loop.remove_reader(self.sock.fileno())

    def _readable(self) -> None:
        sock = self.sock
        if sock is None or not self._is_read:
            return
        view = self._buffer
        if 0 < self._wanted_bytes < READ_BYTES:
            view = view[: self._wanted_bytes]
        try:
            size = sock.recv_into(view)
        except _MEANWHILE:
            return
        except OSError:
            size = 0
        if not size:
            self._is_read = False
            self._loop.remove_reader(sock.fileno())
            self._ends.close_and_notify_owner_soon(self)
        elif not self._ending and self._owner is not None:
            self._owner.receive_bytes(self, view[:size])
        if self._tls is not None and self._tls.pending():
            self._loop.call_soon(self._readable)  # bytes that are decrypted already make no socket readable

    # --- writing ---

    def write(self, data: Bytes) -> None:
        """Send data; the bytes that the socket does not take at once wait."""
        if self.is_gone or self._ending:
            return
        if self.is_write_blocked:
            self._keep(data, 0)
            return
        assert self.sock is not None, "it is full without one"
        try:
            sent = self.sock.send(data)
        except _MEANWHILE:
            sent = 0
        except OSError:
            self._ends.close_and_notify_owner_soon(self)
            return
        if sent < len(data):
            self._keep(data, sent)
            self._update_writing()

    def _keep(self, data: Bytes, sent: int) -> None:
        """Store the unsent bytes: immutable bytes without a copy, anything else as a copy."""
        left = memoryview(data)[sent:]
        self._waiting.append(left if isinstance(data, bytes) else memoryview(bytes(left)))

    def _update_writing(self) -> None:
        wanted = bool(self._waiting)
        if self.sock is None or self._is_writing == wanted:
            return
        self._is_writing = wanted
        if wanted:
            self._loop.add_writer(self.sock.fileno(), self._flush)
        else:
            self._loop.remove_writer(self.sock.fileno())

    def _flush(self) -> None:
        sock = self.sock
        if sock is None:
            return
        waiting = self._waiting
        try:
            while waiting:
                sent = sock.send(waiting[0])
                self.sent_bytes += sent
                if sent == len(waiting[0]):
                    waiting.popleft()
                else:
                    waiting[0] = waiting[0][sent:]
        except _MEANWHILE:
            pass
        except OSError:
            self.close_after_loss()
            return
        self._update_writing()
        if not waiting:
            if self._ending:
                self._say_end()
            elif self._owner is not None:
                self._owner.note_all_sent(self)

    # --- the end ---

    def close_when_sent(self) -> None:
        """Close once all waiting bytes have been sent; until then everything that the peer sends is dropped."""
        if self.is_gone or self._ending:
            return
        if self.sock is None and not self._waiting:
            self.abort()
            return
        self._ending = True
        if self.sock is not None:
            self._linger_on()
            self._update_reading()
            if not self._waiting:
                self._say_end()

    def _linger_on(self) -> None:
        self._linger = self._loop.call_later(LINGER_S, self.abort)

    def _say_end(self) -> None:
        if self.sock is not None:
            try:
                shut_down_writing(self.sock)
            except OSError:
                self.abort()

    def close_after_loss(self) -> None:
        """Close because the peer has closed or is lost, and notify the owner."""
        if self.is_gone:
            return
        owner = None if self._ending else self._owner
        self.abort()
        if owner is not None:
            owner.on_stream_lost(self)

    def abort(self) -> None:
        """Close at once, and drop the bytes that wait."""
        if self.is_gone:
            return
        self.is_gone = True
        owner = self._owner
        self._owner = None  # which refers to this stream, and the garbage collector comes rarely
        self._waiting.clear()
        if self._linger is not None:
            self._linger.cancel()
        sock, self.sock, self._tls = self.sock, None, None
        if sock is not None:
            if self._is_read:
                self._loop.remove_reader(sock.fileno())
            if self._is_writing:
                self._loop.remove_writer(sock.fileno())
            sock.close()
            self._is_read = self._is_writing = False
        if owner is not None:
            owner.note_socket_closed(self)
