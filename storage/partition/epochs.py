# SPDX-License-Identifier: Apache-2.0
"""`leader-epoch-checkpoint`: from which offset on each leader of a partition wrote.

In the form of Kafka's `LeaderEpochCheckpointFile`: the version 0, the number of entries, and a line of `epoch
offset` for each. The batches say the same, so a file that is missing or makes no sense is made again from them.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from protocol.names import LeaderEpoch, Offset
from storage.disk.checkpoint_file import TopicPartition, read_offsets
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import LEADER_EPOCH_FILE, TAKEN_OVER_FILE, partition_dir


class LeaderEpochs:
    """The epochs of one partition, in memory. Methods that say so raise OSError."""

    __slots__ = ("_fs", "_path", "dirty", "entries")

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self.entries: list[tuple[LeaderEpoch, Offset]] = []
        """Epoch and first offset, both going up."""
        self.dirty = False
        """Whether the file does not say this yet."""
        self._fs = fs
        self._path = directory / LEADER_EPOCH_FILE

    def load(self) -> bool:
        """Read the file; False when there is none, or when it makes no sense. Raises OSError."""
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
    def last(self) -> LeaderEpoch:
        """The newest leader's epoch, -1 without any."""
        return self.entries[-1][0] if self.entries else LeaderEpoch(-1)

    def assign(self, epoch: LeaderEpoch, base_offset: Offset) -> None:
        """A leader wrote from this offset on (LeaderEpochFileCache.assign); older epochs, and none, change nothing."""
        if epoch > self.last:
            # Where nothing came of an earlier leader's first batch, there is none of its either.
            self._drop_from(base_offset)
            self.entries.append((epoch, base_offset))
            self.dirty = True

    def truncate(self, end_offset: Offset) -> None:
        """The log ends here now."""
        if self.entries and self.entries[-1][1] >= end_offset:
            self._drop_from(end_offset)
            self.dirty = True

    def _drop_from(self, offset: Offset) -> None:
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()

    def end_of(
        self, epoch: LeaderEpoch, leader_epoch: LeaderEpoch, end_offset: Offset
    ) -> tuple[LeaderEpoch, Offset] | None:
        """Up to which offset an epoch, or the newest one before it, wrote in a log that ends at `end_offset`.

        `leader_epoch` is that of the leader now, which may have written nothing yet. None for an epoch that the log
        knows nothing of (LeaderEpochFileCache.endOffsetFor).
        """
        latest = max(self.last, leader_epoch)
        if epoch == latest:
            return epoch, end_offset
        if epoch < 0 or epoch > latest:
            return None
        number = bisect_right(self.entries, epoch, key=itemgetter(0))
        end = self.entries[number][1] if number < len(self.entries) else end_offset
        return (self.entries[number - 1][0] if number else epoch), end

    def at(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the leader that wrote an offset; -1 where that is not known."""
        number = bisect_right(self.entries, offset, key=itemgetter(1))
        return self.entries[number - 1][0] if number else LeaderEpoch(-1)

    def replace(self, entries: Iterable[tuple[LeaderEpoch, Offset]]) -> None:
        """Take these instead, as far as they go up."""
        before = self.entries
        self.entries = []
        for epoch, base_offset in entries:
            self.assign(epoch, base_offset)
        self.dirty = self.dirty or self.entries != before

    def write(self) -> None:
        """Replace the file, if it has to be. Raises OSError."""
        if self.dirty:
            lines = ["0", str(len(self.entries)), *(f"{epoch} {offset}" for epoch, offset in self.entries)]
            atomic_write(self._fs, self._path, "".join(line + "\n" for line in lines).encode())
            self.dirty = False


def next_epoch(fs: FileSystem, data_dir: Path, key: TopicPartition) -> LeaderEpoch:
    """Return the lowest epoch under which a node may lead a partition that no other node has led; 0 for a new one.

    It goes on under the epoch of its last life, and begins one of its own behind what a broker wrote. Raises OSError.
    """
    epochs = LeaderEpochs(fs, partition_dir(data_dir, *key))
    if not epochs.load() or not epochs.entries:
        return LeaderEpoch(0)
    epoch, first_offset = epochs.entries[-1]
    taken_over = (read_offsets(fs, data_dir / TAKEN_OVER_FILE) or {}).get(key, Offset(0))
    # Negative where it is not known yet how far a broker wrote.
    return LeaderEpoch(epoch + 1) if first_offset < taken_over or taken_over < 0 else epoch


def _goes_up(entries: list[tuple[LeaderEpoch, Offset]]) -> bool:
    return all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(entries))
