# SPDX-License-Identifier: Apache-2.0
"""The state of a log: after a failed write it accepts nothing until it has been repaired."""

from pathlib import Path

from storage.errors import LogNotWritable, StorageError, storage_error


class Health:
    """The state that all parts of a `LogManager` share; the part that fails first notes why."""

    __slots__ = ("_data_dir", "closed", "failed")

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.closed = False
        self.failed: StorageError | None = None
        """The reason why appends are refused, or None."""

    def check_open(self) -> None:
        """Raise LogNotWritable if the log is closed."""
        if self.closed:
            raise LogNotWritable(self._data_dir, "the log is closed")

    def check(self) -> None:
        """Raise LogNotWritable if the log is closed, or an earlier write failed."""
        self.check_open()
        if self.failed is not None:
            raise LogNotWritable(self._data_dir, f"an earlier write failed ({self.failed})")

    def record_failure(self, path: Path, error: OSError, doing: str) -> StorageError:
        """Refuse appends from now on; return the error to raise."""
        self.failed = storage_error(path, error, doing)
        return self.failed
