# SPDX-License-Identifier: Apache-2.0
"""The errors of everything below the coordinator.

There are two families: `StorageError` reports that the disk, or its content, has failed (the appender must
fail and load again); the `ValueError`s report that some bytes are not what they claim to be, or that a
record cannot be written at all, and leave the log unchanged.
"""

import errno
import os

from protocol.newtypes import Partition


class StorageError(Exception):
    """A file operation failed. Nothing that it should have made durable may be acknowledged."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        reason: str,
        *,
        position: int | None = None,
        errno: int | None = None,
    ) -> None:
        where = os.fspath(path) if position is None else f"{os.fspath(path)} at byte {position}"
        super().__init__(f"{where}: {reason}")
        self.path = os.fspath(path)
        self.position = position
        self.reason = reason
        self.errno = errno


class StorageFull(StorageError):
    """No space, or no quota, is left on the device."""


class LogNotWritable(StorageError):
    """An earlier append failed, and the log refuses more of them until it has been repaired."""


class NotOwned(StorageError):
    """The partition belongs to another node that works on the same data directory."""

    def __init__(self, path: str | os.PathLike[str], partition: Partition) -> None:
        super().__init__(path, f"partition {partition} is not this node's")


class CorruptLog(StorageError):
    """Bytes inside a log or journal are damaged; they stay unchanged for an operator to inspect."""


class DirectoryLocked(StorageError):
    """Another process uses this data directory; `pid` is its process id if that could be read."""

    def __init__(self, path: str | os.PathLike[str], pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(path, f"the data directory is in use by {holder}")
        self.pid = pid


class RecordTooLarge(ValueError):
    """Records that must be written together do not fit in one batch; nothing was written."""


class CorruptRecord(ValueError):
    """A record's key or value does not have the form of its version."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CorruptBatch(ValueError):
    """A record batch is cut short or damaged; `position` is the byte at which the batch starts."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"record batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class IncompleteBatch(CorruptBatch):
    """The bytes end before the batch does: more may follow in the file, or a write was torn."""


def get_error_fields(error: Exception) -> dict[str, object]:
    """Return an error's parts for a structured log line: its reason, and the file and position if known."""
    if not isinstance(error, StorageError):
        return {"reason": str(error)}
    position = {} if error.position is None else {"position": error.position}
    return {"file": error.path, **position, "reason": error.reason}


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


_UNREADABLE = frozenset({errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)})


def is_unreadable(error: OSError) -> bool:
    """Return whether the error means that the disk, or its file system, has lost a part of a file."""
    return error.errno in _UNREADABLE


def storage_error(path: str | os.PathLike[str], error: OSError, doing: str) -> StorageError:
    """Return the `StorageError` that stands for an `OSError` met while `doing` something to `path`."""
    kind = StorageFull if error.errno in _FULL else StorageError
    return kind(path, f"{doing} failed: {error.strerror or error}", errno=error.errno)
