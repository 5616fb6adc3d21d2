# SPDX-License-Identifier: Apache-2.0
"""The orders of operators to a supervisor, and its response: MessagePack in frames with a length."""

import os
from pathlib import Path
from typing import Final

import msgspec

from coordinator.config import Settings
from coordinator.runtime.sockets import PATH_BYTES_MAX
from protocol.newtypes import LeaderEpoch, Partition
from storage.errors import StorageError

FILE_NAME: Final = "control.sock"
ORDER_BYTES_MAX: Final = 4096


class _Order(msgspec.Struct, frozen=True, tag=True):
    pass


class ListPartitions(_Order, frozen=True):
    """Asks for the states of all partitions and nodes."""


class Move(_Order, frozen=True):
    """Orders that another node lead a partition."""

    partition: Partition
    to: int


class Drain(_Order, frozen=True):
    """Orders a node to lead nothing any more, and to end."""

    node: int


class ReadSettings(_Order, frozen=True):
    """Asks for the settings that the supervisor runs with, for commands that work on the same data directory."""


Order = ListPartitions | Move | Drain | ReadSettings


class PartitionState(msgspec.Struct, frozen=True):
    """One partition; `leader` is -1 if it has none; `state` is online, loading, moving or failed."""

    partition: Partition
    leader: int
    leader_epoch: LeaderEpoch
    state: str
    reason: str | None = None


class NodeDescription(msgspec.Struct, frozen=True):
    """One node; `state` is serving, draining or starting."""

    node: int
    state: str
    address: str | None
    pid: int | None
    restarts: int


class Answer(msgspec.Struct, frozen=True):
    """The response to an order: the current states, the settings, or why the order was refused."""

    partitions: list[PartitionState] = []
    nodes: list[NodeDescription] = []
    refused: str | None = None
    settings: Settings | None = None
    """The settings, with absolute paths, for ReadSettings."""


class PathTooLong(StorageError):
    """The data directory's path is too long for a unix socket in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, f"a unix socket's path has at most {PATH_BYTES_MAX} bytes; choose a shorter data.dir"
        )


def socket_path(data_dir: Path) -> Path:
    """Return the path of a data directory's socket. Raises PathTooLong."""
    path = data_dir / FILE_NAME
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise PathTooLong(path)
    return path
