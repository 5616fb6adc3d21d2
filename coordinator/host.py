# SPDX-License-Identifier: Apache-2.0
"""What a node is given by the machine that it runs on: disk, clocks, chance, threads and sockets.

Nothing else in a node reaches for these by itself, so tests can run one on a disk that fails, and whole nodes
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
from coordinator.runtime.io_thread import IoThread, Thread
from coordinator.runtime.sockets import bind, bind_private, bind_shared, unconnected
from storage.cleaner.log_cleaner import Runner
from storage.disk.filesystem import FileSystem, RealFileSystem


@dataclass(frozen=True, slots=True)
class HostResources:
    """The ports of a node; the defaults are the real ones."""

    fs: FileSystem
    clock: Clock
    random_bytes: Callable[[int], bytes] = os.urandom
    """So many unpredictable bytes, for ids."""
    thread: Callable[[asyncio.AbstractEventLoop, str], Thread] = IoThread
    """Starts a thread of this name."""
    bind: Callable[[Address], socket.socket] = bind
    """A socket that listens. Raises OSError with the address in its text."""
    compact: Runner | None = None
    """Does the work of a compaction; None stands for a child process."""
    bind_private: Callable[[Path], socket.socket] = bind_private
    """A socket that listens for processes of this user. Raises OSError with the path in its text."""
    bind_shared: Callable[[Address], socket.socket] = bind_shared
    """A socket that listens beside those of other processes on the same address. Raises OSError with the address."""
    unconnected: Callable[[int], socket.socket] = unconnected
    """A stream socket that is still to be connected. Raises OSError."""

    def now(self) -> datetime:
        """The wall clock's time, in UTC."""
        return datetime.fromtimestamp(self.clock.wall_ms() / 1000, UTC)

    def new_uuid(self) -> uuid.UUID:
        """A random UUID, version 4."""
        return uuid.UUID(bytes=self.random_bytes(16), version=4)

    def new_topic_id(self) -> bytes:
        """A random id for a topic."""
        return random_topic_id(self.new_uuid)

    def new_producer_id(self) -> int:
        """A random id for a producer, from 0 to 2**63 - 1: so many that none comes twice, though none is kept."""
        return int.from_bytes(self.random_bytes(8), "big") >> 1


def real_machine() -> HostResources:
    """The machine that this process runs on."""
    return HostResources(RealFileSystem(), SystemClock())
