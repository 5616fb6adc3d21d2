# SPDX-License-Identifier: Apache-2.0
"""The resources of the machine that a node runs on: disk, clocks, randomness, threads and sockets.

No other code of a node accesses these directly, so tests can run a node on a disk that fails, and whole nodes
on simulated time.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from coordinator.catalogue.ids import random_topic_id
from coordinator.config import Address
from coordinator.runtime.clock import Clock, SystemClock
from coordinator.runtime.io_thread import BlockingCallThread, IoThread
from coordinator.runtime.sockets import (
    listen_on_address,
    listen_on_private_path,
    listen_on_shared_address,
    make_stream_socket,
)
from storage.cleaner.log_cleaner import Runner
from storage.disk.filesystem import FileSystem, RealFileSystem


@dataclass(frozen=True, slots=True)
class HostResources:
    """The functions and objects by which a node uses its machine; the defaults use the real machine."""

    fs: FileSystem
    clock: Clock
    random_bytes: Callable[[int], bytes] = os.urandom
    """Returns the given number of unpredictable bytes, for ids."""
    thread: Callable[[asyncio.AbstractEventLoop, str], BlockingCallThread] = IoThread
    """Starts a thread with the given name."""
    bind: Callable[[Address], socket.socket] = listen_on_address
    """Returns a socket that listens. Raises OSError with the address in its text."""
    compact: Runner | None = None
    """Does the work of a compaction; None stands for a child process."""
    bind_private: Callable[[Path], socket.socket] = listen_on_private_path
    """Returns a socket that listens for processes of this user. Raises OSError with the path in its text."""
    bind_shared: Callable[[Address], socket.socket] = listen_on_shared_address
    """Returns a socket that listens on an address shared with other processes. Raises OSError with the address."""
    unconnected: Callable[[int], socket.socket] = make_stream_socket
    """Returns a stream socket that is still to be connected. Raises OSError."""

    def utc_now(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.fromtimestamp(self.clock.wall_ms() / 1000, UTC)

    def new_uuid(self) -> uuid.UUID:
        """Return a random UUID, version 4."""
        return uuid.UUID(bytes=self.random_bytes(16), version=4)

    def new_topic_id(self) -> bytes:
        """Return a random id for a topic."""
        return random_topic_id(self.new_uuid)

    def new_random_producer_id(self) -> int:
        """Return a random producer id from 0 to 2**63 - 1: ids are not stored, but practically never repeat."""
        return int.from_bytes(self.random_bytes(8), "big") >> 1


def real_machine() -> HostResources:
    """Return the resources of the machine that this process runs on."""
    return HostResources(RealFileSystem(), SystemClock())
