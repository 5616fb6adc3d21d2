# SPDX-License-Identifier: Apache-2.0
"""The `.index` and `.timeindex` of a segment, in the form of Kafka's `OffsetIndex` and `TimeIndex`.

The first has the positions of some of the batches: 4 bytes of offset, the batch's last, counted from the
segment's first, and 4 bytes of position. The second has batches with rising timestamps: 8 bytes of timestamp,
the largest so far, and 4 bytes of the last offset of its batch, counted in the same way.

Both derive from the segment, so they are never trusted blindly: entries are gathered in memory while the
segment is written, go to their files at a checkpoint, and after a crash the files are checked before they
are used. Wrong entries are made again from the batches' headers.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import Final, Protocol

from protocol.newtypes import Offset
from storage.disk.filesystem import FileSystem, read_file
from storage.disk.layout import INDEX_SUFFIXES, segment_name
from storage.format.batch_format import EXTENT_BYTES, BatchSummary, batch_extent, summarize

_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class IndexSource(Protocol):
    """The source of an index: a segment."""

    size_bytes: int

    def summaries(self, position: int) -> Iterator[BatchSummary]:
        """Yield the batches from `position` on, which must be the start of one."""


class SegmentIndex:
    """The two indexes of one segment. Its methods raise OSError."""

    __slots__ = (
        "_base_offset",
        "_entries",
        "_entries_on_disk",
        "_fs",
        "_interval_bytes",
        "_last_time",
        "_paths",
        "_ready",
        "_since",
        "_stale",
        "_thorough",
        "_times",
        "_times_on_disk",
        "_top",
        "sealed",
    )

    def __init__(
        self, fs: FileSystem, directory: Path, base_offset: Offset, interval_bytes: int, suffix: str = ""
    ) -> None:
        self.sealed = False
        """True if the files are whole: no entry is missing, and the largest timestamp is included."""
        self._fs = fs
        self._paths = [directory / segment_name(base_offset, each + suffix) for each in INDEX_SUFFIXES]
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        # True if the files may be torn, so that every entry must be checked.
        self._thorough = False
        self._reset()

    def _reset(self) -> None:
        """Set the state of an empty segment, except that the files must be read."""
        self._entries = bytearray()
        self._times = bytearray()
        self._entries_on_disk = self._times_on_disk = 0
        self._stale = True  # whether the files may be longer than their good part
        self._since = 0
        self._last_time = -1
        self._top = (-1, Offset(0))  # the largest timestamp, and the last offset of the first batch with it
        self._ready = False

    def clear(self) -> None:
        """Set the state of an empty segment."""
        self._reset()
        self._ready = True
        self.sealed = self._thorough = False

    def distrust_files(self) -> None:
        """Mark the files as doubtful, to be checked before their next use: the segment was cut, or a crash came."""
        self._ready = self.sealed = False
        self._thorough = True

    @property
    def has_unwritten_entries(self) -> bool:
        """True if the index covers the segment up to its end, and may hold more than its files."""
        return self._ready and not self.sealed

    @property
    def is_doubtful(self) -> bool:
        """True if a crash may have torn the index files of this segment, and they were not checked since."""
        return self._thorough and not self._ready

    def remove_files_to_be_rebuilt(self) -> None:
        """Remove the files, which are rebuilt if needed. Not durable before the directory is synced."""
        for path in self._paths:
            self._fs.remove(path)

    def extend(self, segment: IndexSource, batches: Iterable[BatchSummary]) -> None:
        """Add batches that were written to the end of the segment, whose size does not count them yet."""
        if not self._ready:
            self._resume(segment)
        self.sealed = False
        self._note(segment.size_bytes, batches)

    def _note(self, position: int, batches: Iterable[BatchSummary]) -> None:
        """Note successive batches from `position` on, whatever their own `position` is (LogSegment.append)."""
        since, interval, top = self._since, self._interval_bytes, self._top[0]
        for batch in batches:
            if batch.max_timestamp > top:
                top = batch.max_timestamp
                self._top = (top, batch.last_offset)
            if since > interval:
                self._entries += _ENTRY.pack(batch.last_offset - self._base_offset, position)
                self._note_time()
                since = 0
            since += batch.size_bytes
            position += batch.size_bytes
        self._since = since

    def _note_time(self) -> None:
        timestamp, offset = self._top
        if timestamp > self._last_time:
            self._times += _TIME_ENTRY.pack(timestamp, offset - self._base_offset)
            self._last_time = timestamp

    def write(self, segment: IndexSource, *, seal: bool = False, sync: bool = False) -> None:
        """Write the gathered entries to the files.

        With `seal` the files are whole afterwards, for other readers of a segment that is not written any more.
        """
        if self.sealed:
            return
        if not self._ready:
            self._resume(segment)
        if seal:
            self._note_time()
        if self._entries or self._times or self._stale or sync:
            entries = self._put(0, self._entries_on_disk, self._entries, sync=sync)
            times = self._put(1, self._times_on_disk, self._times, sync=sync)
            self._entries_on_disk, self._times_on_disk = entries, times
            self._entries, self._times, self._stale = bytearray(), bytearray(), False
        self.sealed = seal

    def _put(self, which: int, position: int, entries: bytearray, *, sync: bool) -> int:
        file = self._fs.open(self._paths[which], create=True)
        try:
            if self._stale:
                file.truncate(position)
            if entries:
                file.pwrite([bytes(entries)], position)
            if sync:
                file.fsync()
        except OSError:
            # The content of the file is unknown now.
            self.distrust_files()
            raise
        finally:
            file.close()
        return position + len(entries)

    def largest_timestamp(self) -> int:
        """Return the last timestamp of the time index, whose files must be whole; -1 if there is none."""
        times = self._load(1) or b""
        return int(_TIME_ENTRY.unpack_from(times, len(times) - _TIME_ENTRY.size)[0]) if times else -1

    def find_max_timestamp_batch(self, segment: IndexSource) -> tuple[int, Offset]:
        """Return the segment's largest timestamp, and the last offset of the first batch with it; -1 for none."""
        if self.sealed and not self._ready:
            times = self._load(1) or b""
            if not times:
                return -1, Offset(-1)
            timestamp, offset = _TIME_ENTRY.unpack_from(times, len(times) - _TIME_ENTRY.size)
            return timestamp, Offset(self._base_offset + offset)
        if not self._ready:
            self._resume(segment)
        return self._top if self._top[0] >= 0 else (-1, Offset(-1))

    def offset_before_timestamp(self, timestamp: int) -> Offset:
        """Return an offset whose batch, and all before it, are older than `timestamp`; the base offset if unknown.

        Call `find_max_timestamp_batch` first.
        """
        times = self._load(1) or b""
        if not self.sealed:
            times = times[: self._times_on_disk] + bytes(self._times)
        low, high = 0, len(times) // _TIME_ENTRY.size
        while low < high:
            middle = (low + high) // 2
            entry = _TIME_ENTRY.unpack_from(times, middle * _TIME_ENTRY.size)
            # The file of a running broker has zeros behind its entries.
            if entry != (0, 0) and entry[0] < timestamp:
                low = middle + 1
            else:
                high = middle
        if not low:
            return self._base_offset
        return Offset(
            self._base_offset + int(_TIME_ENTRY.unpack_from(times, (low - 1) * _TIME_ENTRY.size)[1])
        )

    def find(self, offset: Offset) -> tuple[int, Offset]:
        """Return a position to search `offset` from, and the last offset of its batch; (0, -1) if there is none."""
        data = self._load(0) or b""
        low, high = 0, len(data) // _ENTRY.size
        while low < high:
            middle = (low + high) // 2
            relative, position = _ENTRY.unpack_from(data, middle * _ENTRY.size)
            # The file of a running broker has zeros behind its entries.
            if (relative or position) and self._base_offset + relative <= offset:
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0, Offset(-1)
        relative, position = _ENTRY.unpack_from(data, (low - 1) * _ENTRY.size)
        return position, Offset(self._base_offset + relative)

    def _load(self, which: int) -> bytes | None:
        try:
            return read_file(self._fs, self._paths[which])
        except FileNotFoundError:
            return None

    def _resume(self, segment: IndexSource) -> None:
        """Read the entries of the files, and add the missing ones."""
        self._reset()
        entries, times = self._load(0), self._load(1)
        start = 0
        if entries is not None and times is not None:
            start = self._take(segment, entries, times)
        # The batch of the last entry is in the index already, and begins the count.
        self._note(start, segment.summaries(start))
        self._thorough = False
        self._ready = True

    def _take(self, segment: IndexSource, entries: bytes, times: bytes) -> int:
        """Take the right entries of the files; return the position from which on they have none."""
        count = self._good_entries(entries, segment.size_bytes)
        good = _good_times(times) if count else 0
        if not good:
            return 0
        timestamp, time_offset = _TIME_ENTRY.unpack_from(times, (good - 1) * _TIME_ENTRY.size)
        # If the time index ends earlier, the largest timestamp of the batches behind its end is unknown.
        while count and (entry := _ENTRY.unpack_from(entries, (count - 1) * _ENTRY.size))[0] > time_offset:
            count -= 1
        # An entry that is wrong makes those before it doubtful.
        if not count or not self._agrees(segment, entry, timestamp, time_offset):
            return 0
        self._entries_on_disk, self._times_on_disk = count * _ENTRY.size, good * _TIME_ENTRY.size
        self._last_time = timestamp
        self._top = (timestamp, Offset(self._base_offset + time_offset))
        self._stale = self._entries_on_disk != len(entries) or self._times_on_disk != len(times)
        return int(entry[1])

    def _agrees(self, segment: IndexSource, entry: tuple[int, int], timestamp: int, time_offset: int) -> bool:
        """Return whether the batches agree with the last entries of both indexes."""
        is_first = True
        for batch in segment.summaries(entry[1]):
            if is_first and batch.last_offset != self._base_offset + entry[0]:
                return False
            if batch.last_offset >= self._base_offset + time_offset:
                is_the_one = batch.last_offset == self._base_offset + time_offset
                return is_the_one and batch.max_timestamp == timestamp
            is_first = False
        return False

    def _good_entries(self, data: bytes, size_bytes: int) -> int:
        """Return the number of entries that can be right: ascending, and within the segment."""
        count = len(data) // _ENTRY.size
        if not self._thorough:
            return count
        before = (-1, 0)
        for number, entry in enumerate(_ENTRY.iter_unpack(data[: count * _ENTRY.size])):
            if entry[0] <= before[0] or entry[1] <= before[1] or entry[1] >= size_bytes:
                return number
            before = entry
        return count


def _good_times(data: bytes) -> int:
    """Return the number of ascending entries at the start of a time index."""
    before = (-1, -1)
    good = 0
    for entry in _TIME_ENTRY.iter_unpack(data[: len(data) // _TIME_ENTRY.size * _TIME_ENTRY.size]):
        # An empty file of a running broker is full of zeros.
        if entry[0] <= before[0] or entry[1] <= before[1] or entry == (0, 0):
            break
        before = entry
        good += 1
    return good


def summarize_batches(data: bytes, position: int) -> Iterator[BatchSummary]:
    """Yield the whole batches at the start of `data`, which was read from `position`."""
    pos, size = 0, len(data)
    while pos + EXTENT_BYTES <= size:
        extent = batch_extent(data, pos)
        if extent is None or extent.end > size:
            return
        yield summarize(data, pos, position + pos)
        pos = extent.end
