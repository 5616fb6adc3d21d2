# SPDX-License-Identifier: Apache-2.0
"""A port behind which the server can be another from one moment to the next."""

import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 64 * 1024


class Forwarder:
    """Passes the bytes of each connection on to the server of the moment."""

    def __init__(self) -> None:
        """Listen on a free port of loopback; close it in the end."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._target = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def lead_to(self, port: int) -> None:
        """Connections lead to this port of loopback from now on; those that there are end."""
        self._target = port
        self._end_all()

    def close(self) -> None:
        """Listen no more, and end all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end_all()

    def _end_all(self) -> None:
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open |= {client, server}
                for way in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                to.sendall(data)
        with suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()
