# SPDX-License-Identifier: Apache-2.0
"""The sockets of a node."""

import os
import socket
import struct
from pathlib import Path
from typing import Final

from coordinator.config import Address

BACKLOG: Final = 1024
PATH_BYTES_MAX: Final = 103
"""The longest path of a unix socket on all systems: it is 107 bytes on Linux, 103 on macOS."""
PRIVATE_DIRECTORY: Final = "private"
"""The folder of a data directory that holds the sockets between its processes."""


def private_socket_path(data_dir: Path, node_id: int) -> Path:
    """Return the path of a node's private socket."""
    return data_dir / PRIVATE_DIRECTORY / f"{node_id}.sock"


def listen_on_private_path(path: Path) -> socket.socket:
    """Return a socket that listens at `path`, for processes of this user alone; an existing one is removed.

    Its folder is made, and closed to other users. Raises OSError with the path in its text.
    """
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        reason = f"a unix socket's path has at most {PATH_BYTES_MAX} bytes; choose a shorter data.dir"
        raise OSError(None, f"cannot listen on {path}: {reason}")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # closed to others from its first moment on
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.parent.chmod(0o700)
        path.unlink(missing_ok=True)  # of a process that was killed
        sock.bind(str(path))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {path}: {error.strerror}") from error
    finally:
        os.umask(before)
    return sock


def listen_on_address(address: Address, *, shared: bool = False) -> socket.socket:
    """Return a socket that listens on `address`, `shared` with others or not. Raises OSError that names the address."""
    infos = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, target = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(target)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    return sock


def listen_on_shared_address(address: Address) -> socket.socket:
    """Return a socket that listens on `address` together with other processes, which share the connections.

    Raises OSError with the address in its text.
    """
    return listen_on_address(address, shared=True)


UNIX: Final[int] = socket.AF_UNIX
STREAM: Final[int] = socket.SOCK_STREAM


def make_stream_socket(family: int) -> socket.socket:
    """Return a stream socket of this family that does not block. Raises OSError."""
    sock = socket.socket(family, STREAM)
    sock.setblocking(False)
    return sock


def set_nonblocking_and_nodelay(sock: socket.socket) -> None:
    """Make a TCP socket non-blocking, and have it send all data at once (TCP_NODELAY)."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def shut_down_writing(sock: socket.socket) -> None:
    """Shut the socket's sending side down, which the peer sees as the end. Raises OSError."""
    sock.shutdown(socket.SHUT_WR)


def drop_unsent_on_close(sock: socket.socket) -> None:
    """Have the system drop what it has not sent when the socket is closed, and reset the connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
