# SPDX-License-Identifier: Apache-2.0
"""Whether a log can be used: after a failed write nothing is accepted until it has been repaired."""

from pathlib import Path

from storage.errors import StorageError, StorageFailed, storage_error


class Health:
    """Shared by all parts of a `LogManager`; whichever fails first says why."""

    __slots__ = ("_data_dir", "closed", "failed")

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.closed = False
        self.failed: StorageError | None = None
        """Why appends are refused, or None."""

    def check_open(self) -> None:
        """Raises StorageFailed once the log is closed."""
        if self.closed:
            raise StorageFailed(self._data_dir, "the log is closed")

    def check(self) -> None:
        """Raises StorageFailed where the log is closed, or an earlier write failed."""
        self.check_open()
        if self.failed is not None:
            raise StorageFailed(self._data_dir, f"an earlier write failed ({self.failed})")

    def fail(self, path: Path, error: OSError, doing: str) -> StorageError:
        """Nothing is accepted from now on; returns what to raise."""
        self.failed = storage_error(path, error, doing)
        return self.failed
