# SPDX-License-Identifier: Apache-2.0
"""Fetches of a megabyte, over and over from the page cache, on several connections.

`python -m bench.forwarding.streaming HOST:PORT SECONDS` prints how many bytes came, and in how many seconds.
"""

import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from bench.cluster import Address, Unprepared
from bench.forwarding.frames import FETCH_BYTES, LARGE, TIMEOUT_S, fetch
from bench.forwarding.ways import Way
from bench.servers import REPOSITORY, tied_to_us

MODULE: Final = "bench.forwarding.streaming"
CONNECTIONS: Final = 4
BUFFER_BYTES: Final = 1 << 20
WARM_UP_S: Final = 0.5


class Carried(NamedTuple):
    """What came through a way in a time, and what it cost the way."""

    way: str
    mb_per_s: float
    cpu_s_per_gb: float


def stream(way: Way, seconds: float) -> Carried:
    """Fetch for so long. Raises OSError, Unprepared."""
    with _reading(way.address) as selector:
        _read_for(selector, WARM_UP_S)
        cpu_s, began = way.cpu_s(), time.perf_counter()
        size = _read_for(selector, seconds)
        took, used_s = time.perf_counter() - began, way.cpu_s() - cpu_s
    return Carried(way.name, size / 1e6 / took, used_s / (size / 1e9))


class Stream:
    """The same in a process of its own, which has begun when this returns."""

    def __init__(self, address: Address, seconds: float) -> None:
        command = [sys.executable, "-m", MODULE, str(address), str(seconds)]
        self._process = subprocess.Popen(
            tied_to_us(command), stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def mb_per_s(self) -> float:
        """Wait for its end; what came through. Raises Unprepared."""
        said, _ = self._process.communicate()
        if self._process.returncode:
            raise Unprepared("a client that fetches has failed")
        size, seconds = said.split()
        return int(size) / 1e6 / float(seconds)


@contextmanager
def _reading(address: Address) -> Iterator[selectors.BaseSelector]:
    """Connections that have asked for the first time."""
    frame = fetch(LARGE, FETCH_BYTES).frame
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection(address, TIMEOUT_S))
            sock.sendall(frame)
            selector.register(sock, selectors.EVENT_READ, _Reader(sock, frame))
        yield selector


class _Reader:
    """One connection: reads answers to their ends, and asks again."""

    def __init__(self, sock: socket.socket, frame: bytes) -> None:
        self._sock = sock
        self._frame = frame
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._left = 0

    def read(self) -> int:
        """Read once; returns how many bytes came. Raises Unprepared."""
        size = self._sock.recv_into(self._buffer)
        if not size:
            raise Unprepared("a connection was closed")
        if self._left == 0:
            # The length comes first, and whole: a server writes it with what follows.
            self._left = 4 + int.from_bytes(self._buffer[:4], "big")
        self._left -= size
        if self._left == 0:
            self._sock.sendall(self._frame)
        return size


def _read_for(selector: selectors.BaseSelector, seconds: float) -> int:
    total, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for key, _ in selector.select(1.0):
            total += key.data.read()
    return total


def main(arguments: Sequence[str]) -> None:
    """Fetch, and print what came."""
    address, seconds = arguments
    with _reading(Address.parse(address)) as selector:
        print("begins", flush=True)
        began = time.perf_counter()
        size = _read_for(selector, float(seconds))
    print(size, time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1:])
