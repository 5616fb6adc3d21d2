# SPDX-License-Identifier: Apache-2.0
"""Loopback ports for the servers that tests and benchmarks start.

A port is given out once. The next one is stored in a file that all processes of a user share, and each process holds a
lock on the ports that it was given for as long as it lives. All ports are below the range that Linux, macOS and
Windows take outgoing ports from (32768 and up): while a server is down between a kill and its restart, no client's own
connection can take the server's port.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Final

from bench.maven import cache_directory

HOST: Final = "127.0.0.1"
SERVERS: Final = range(15_000, 32_000)
BROKERS: Final = range(10_000, 13_000)
"""For the broker of a gateway, which reserves 1,000 ports from `gateway.port.base` on: none of them is in SERVERS."""

_NEXT: Final = struct.Struct(">H")
"""The next port of a range; it is stored at twice the range's first port."""
_LOCKS_FROM: Final = 1 << 20
"""The byte that stands for port 0; that of a port is locked while a process has the port."""

_given: Final[set[int]] = set()


def free_ports(count: int, among: range = SERVERS) -> list[int]:
    """Return `count` TCP ports of 127.0.0.1 that nothing listens on and that no living process was given.

    Raises AssertionError if the range has not that many.
    """
    return [free_port_run(1, among) for _ in range(count)]


def free_port_run(count: int, among: range = SERVERS) -> int:
    """Return the first of `count` such ports in a row. Raises AssertionError if the range has no such row."""
    with _choosing() as file:
        stored = os.pread(file, _NEXT.size, 2 * among.start)
        start = _NEXT.unpack(stored)[0] if len(stored) == _NEXT.size else among.start
        start = start if start in among else among.start
        row: list[int] = []
        for port in [*range(start, among.stop), *range(among.start, start)]:
            if row and port != row[-1] + 1:
                _release(file, row)
            if _take(file, port):
                row.append(port)
            else:
                _release(file, row)
            if len(row) == count:
                os.pwrite(file, _NEXT.pack(port + 1), 2 * among.start)
                return row[0]
        _release(file, row)
    raise AssertionError(f"no {count} free ports in a row in {among}")


def is_reserved(port: int) -> bool:
    """Return whether this process was given the port."""
    return port in _given


@cache
def _file() -> int:
    """The shared file. Opened once: closing any descriptor of it would release the locks of this process."""
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    return os.open(directory / "ports", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def service_ports(settings: Mapping[str, str | int]) -> tuple[int, int]:
    """Return the first port of the nodes and the first of the metrics for a service with these settings.

    Each worker has a port of either kind and each gateway one for its metrics, one after the other.
    """
    workers = int(settings.get("workers", 1))
    gateways = int(settings.get("gateway.workers", 1)) if "upstream.bootstrap.servers" in settings else 0
    first = free_port_run(2 * workers + gateways)
    return first, first + workers


@contextmanager
def _choosing() -> Iterator[int]:
    file = _file()
    fcntl.lockf(file, fcntl.LOCK_EX, 1, _LOCKS_FROM - 1)
    try:
        yield file
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _LOCKS_FROM - 1)


def _take(file: int, port: int) -> bool:
    if port in _given:
        return False
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKS_FROM + port)
    except OSError:
        return False
    _given.add(port)
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            _release(file, [port])
            return False
    return True


def _release(file: int, ports: list[int]) -> None:
    for port in ports:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _LOCKS_FROM + port)
        _given.discard(port)
    ports.clear()
