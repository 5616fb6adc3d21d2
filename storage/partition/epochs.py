# SPDX-License-Identifier: Apache-2.0
"""`leader-epoch-checkpoint`: the offset from which on each leader of a partition wrote.

The form is that of Kafka's `LeaderEpochCheckpointFile`: the version 0, the number of entries, and a line of `epoch
offset` for each. The batches hold the same, so a missing or invalid file is made again from them.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from protocol.newtypes import LeaderEpoch, Offset
from storage.disk.checkpoint_file import TopicPartition, read_offsets
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import LEADER_EPOCH_FILE, TAKEN_OVER_FILE, partition_dir


class LeaderEpochs:
    """The leader epochs of one partition, in memory. Methods that say so raise OSError."""

    __slots__ = ("_fs", "_path", "dirty", "entries")

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self.entries: list[tuple[LeaderEpoch, Offset]] = []
        """The epochs and their first offsets, both ascending."""
        self.dirty = False
        """True if the file does not hold the entries yet."""
        self._fs = fs
        self._path = directory / LEADER_EPOCH_FILE

    def load_if_valid(self) -> bool:
        """Read the file; return False if it is missing or invalid. Raises OSError."""
        try:
            lines = read_file(self._fs, self._path).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return False
        try:
            count = int(lines[1])
            entries = [
                (LeaderEpoch(int(epoch)), Offset(int(offset)))
                for epoch, offset in map(str.split, lines[2 : 2 + count])
            ]
        except (ValueError, IndexError):
            return False
        if lines[0] != "0" or len(entries) != count or not _goes_up(entries):
            return False
        self.entries = entries
        return True

    @property
    def newest_epoch(self) -> LeaderEpoch:
        """The newest leader's epoch, or -1 if there is none."""
        return self.entries[-1][0] if self.entries else LeaderEpoch(-1)

    def assign(self, epoch: LeaderEpoch, base_offset: Offset) -> None:
        """Add the epoch of a leader that wrote from this offset on, if it is newer (LeaderEpochFileCache.assign)."""
        if epoch > self.newest_epoch:
            # If an earlier leader's first batch was not written, that leader has no entry either.
            self._drop_from(base_offset)
            self.entries.append((epoch, base_offset))
            self.dirty = True

    def truncate_in_memory(self, end_offset: Offset) -> None:
        """Remove the entries from the new log end offset on."""
        if self.entries and self.entries[-1][1] >= end_offset:
            self._drop_from(end_offset)
            self.dirty = True

    def _drop_from(self, offset: Offset) -> None:
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()

    def find_epoch_end(
        self, epoch: LeaderEpoch, leader_epoch: LeaderEpoch, end_offset: Offset
    ) -> tuple[LeaderEpoch, Offset] | None:
        """Return the end offset of an epoch, or of the newest one before it, in a log that ends at `end_offset`.

        `leader_epoch` is the current leader's, which may have written nothing yet. Returns None for an epoch that
        the log does not know (LeaderEpochFileCache.endOffsetFor).
        """
        latest = max(self.newest_epoch, leader_epoch)
        if epoch == latest:
            return epoch, end_offset
        if epoch < 0 or epoch > latest:
            return None
        number = bisect_right(self.entries, epoch, key=itemgetter(0))
        end = self.entries[number][1] if number < len(self.entries) else end_offset
        return (self.entries[number - 1][0] if number else epoch), end

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """Return the epoch of the leader that wrote an offset; -1 if that is unknown."""
        number = bisect_right(self.entries, offset, key=itemgetter(1))
        return self.entries[number - 1][0] if number else LeaderEpoch(-1)

    def replace_entries_in_memory(self, entries: Iterable[tuple[LeaderEpoch, Offset]]) -> None:
        """Replace the entries by these, as far as they ascend."""
        before = self.entries
        self.entries = []
        for epoch, base_offset in entries:
            self.assign(epoch, base_offset)
        self.dirty = self.dirty or self.entries != before

    def write(self) -> None:
        """Replace the file, if the entries have changed. Raises OSError."""
        if self.dirty:
            lines = ["0", str(len(self.entries)), *(f"{epoch} {offset}" for epoch, offset in self.entries)]
            atomic_write(self._fs, self._path, "".join(line + "\n" for line in lines).encode())
            self.dirty = False


def find_lowest_usable_leader_epoch(fs: FileSystem, data_dir: Path, key: TopicPartition) -> LeaderEpoch:
    """Return the lowest epoch under which a node may lead a partition that no other node has led; 0 for a new one.

    It continues with the epoch of its last run, and begins a new one behind the batches of a broker. Raises OSError.
    """
    epochs = LeaderEpochs(fs, partition_dir(data_dir, *key))
    if not epochs.load_if_valid() or not epochs.entries:
        return LeaderEpoch(0)
    epoch, first_offset = epochs.entries[-1]
    taken_over = (read_offsets(fs, data_dir / TAKEN_OVER_FILE) or {}).get(key, Offset(0))
    # Negative if it is not known yet how far a broker wrote.
    return LeaderEpoch(epoch + 1) if first_offset < taken_over or taken_over < 0 else epoch


def _goes_up(entries: list[tuple[LeaderEpoch, Offset]]) -> bool:
    return all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(entries))
