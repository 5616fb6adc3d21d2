# SPDX-License-Identifier: Apache-2.0
"""The sockets of a node."""

import socket
from typing import Final

from coordinator.config import Address

BACKLOG: Final = 1024


def bind(address: Address) -> socket.socket:
    """A socket that listens on `address`. Raises OSError with the address in its text."""
    infos = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, target = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(target)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    return sock
