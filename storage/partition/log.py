# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: its segments, as Kafka lays them out.

It is not safe for several threads; `LogManager` holds a lock. A reader that continues finds its place by the
remembered end of the last read, any other reader by the segment's index.
"""

import errno
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import read_partition_log_start
from storage.disk.filesystem import FileSystem, atomic_write
from storage.disk.layout import (
    CLEANED_SUFFIX,
    CUT_SUFFIX,
    INDEX_SUFFIXES,
    PARTITION_METADATA_FILE,
    ROLLED_SEGMENTS_FILE,
    SEGMENT_SUFFIXES,
    parse_segment,
)
from storage.disk.properties import encode_uuid
from storage.errors import CorruptLog, storage_error
from storage.format.batch_format import (
    EXTENT_BYTES,
    OFFSET_DELTA_MAX,
    BatchSummary,
    base_offset_of,
    batch_extent,
    summarize,
)
from storage.partition.epochs import LeaderEpochs
from storage.partition.rolled_segments_file import (
    find_missing_segment_error,
    read_required_segment_sizes,
    write_rolled,
)
from storage.partition.segment import BatchesForOneWrite, Segment
from storage.partition.swap import finish_or_undo_swaps, swap_in
from storage.settings import LogSettings


class _Bookmark(NamedTuple):
    """The place at which a reader continues: `offset`, at this byte of this segment."""

    offset: Offset
    segment: Segment
    position: int


class PartitionLog:
    """The batches of one partition on disk. `append` writes to the page cache; `fsync` to the disk."""

    def __init__(
        self, fs: FileSystem, directory: Path, partition: Partition, settings: LogSettings, topic_id: bytes
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.end_offset = Offset(0)
        """The log end offset: the offset that the next record gets."""
        self.noted_start = Offset(0)
        """The log start offset that a broker noted, wherever the first segment starts."""
        self._fs = fs
        self._topic = settings.topic
        self._segment_bytes = settings.segment_bytes
        self._segment_ms = settings.segment_ms
        self._index_interval_bytes = settings.index_interval_bytes
        self._topic_id = topic_id
        self._segments: list[Segment] = []
        self._entries_dirty = False
        self._is_new = True
        self._bookmark: _Bookmark | None = None
        self._noted: dict[Offset, int] | None = None
        """The content of the file with the rolled segments, or None."""
        self._epochs = LeaderEpochs(fs, directory)
        self._epochs_from: Offset | None = None
        """The offset from which on leader epochs have not been read yet, or None."""

    def load(self) -> None:
        """Find the segments on disk. Their scan sets `end_offset` (see `recovery`).

        Finishes an interrupted compaction. Raises OSError.
        """
        self._entries_dirty = finish_or_undo_swaps(self._fs, self.directory)
        names = self._fs.listdir(self.directory)
        self._is_new = PARTITION_METADATA_FILE not in names
        self.noted_start = read_partition_log_start(
            self._fs, self.directory.parent, (self._topic, self.partition)
        )
        for name in names:
            base_offset = parse_segment(name)
            if base_offset is not None:
                segment = self._segment(base_offset, create=False)
                segment.close()
                # If all files of a segment exist, its index is not read before it is used.
                indexes = {segment.path.with_suffix(suffix).name for suffix in INDEX_SUFFIXES}
                segment.index.sealed = indexes.issubset(names)
                self._segments.append(segment)
        if not self._epochs.load_if_valid() and self._segments:
            self._epochs_from = self.start_offset

    def check_against_segment_list(self) -> None:
        """Raise CorruptLog if a segment is missing, or shorter than it was. Raises OSError."""
        self._noted = read_required_segment_sizes(self._fs, self.directory)
        found = {segment.base_offset: segment.size_bytes for segment in self._segments}
        error = find_missing_segment_error(self.directory, self._noted or {}, found)
        if error is not None:
            raise error

    def remove_segment_list(self) -> None:
        """Remove the list of rolled segments, because another program may have compacted them. Raises OSError."""
        if self._fs.exists(self.directory / ROLLED_SEGMENTS_FILE):
            self._fs.remove(self.directory / ROLLED_SEGMENTS_FILE)
            self._entries_dirty = True

    def store_segment_list(self) -> None:
        """Note the segments that must exist from now on: all but the last one. Raises OSError.

        The whole log must be on disk, and its recovery point noted: a recovery may rewrite what lies behind it.
        """
        rolled = {segment.base_offset: segment.size_bytes for segment in self._segments[:-1]}
        if rolled != (self._noted or {}):
            write_rolled(self._fs, self.directory, rolled)
            self._noted = rolled

    def check_segments_present(self, *, all_segments: bool) -> None:
        """Raise FileNotFoundError if the segment being written, or any, was removed. Raises other OSErrors."""
        if not self._segments:
            return
        self._segments[-1].check_file_present()
        if all_segments:
            names = set(self._fs.listdir(self.directory))
            for segment in self._segments:
                if segment.path.name not in names:
                    raise FileNotFoundError(errno.ENOENT, "the segment was removed", str(segment.path))

    def _segment(self, base_offset: Offset, *, create: bool) -> Segment:
        interval = self._index_interval_bytes
        return Segment(self._fs, self.directory, base_offset, create=create, index_interval_bytes=interval)

    def distrust_derived_files(self, offset: Offset) -> None:
        """Mark the files derived from the log from `offset` on as doubtful, since a crash may have torn them.

        They are checked before their next use. So is the index of the segment that ends at `offset`: that was the
        last segment when `offset` was noted, and its files were not checked.
        """
        for segment in self._reaching(Offset(max(offset - 1, 0))):
            segment.index.distrust_files()
        if self._epochs_from is None or offset < self._epochs_from:
            self._epochs_from = offset

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first; the last one is written to."""
        return self._segments

    @property
    def start_offset(self) -> Offset:
        """The first offset that a read can return."""
        return max(self._segments[0].base_offset, self.noted_start) if self._segments else self.end_offset

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def needs_fsync(self) -> bool:
        """True if `fsync` has work to do."""
        return self._entries_dirty or any(segment.dirty for segment in self._segments)

    def mark_unsynced(self, offset: Offset) -> None:
        """Let `fsync` sync all names, and everything from `offset` on, which may not be on disk."""
        self._entries_dirty = bool(self._segments)
        if self.end_offset > offset:
            for segment in self._reaching(offset):
                segment.dirty = True

    def _reaching(self, offset: Offset) -> Sequence[Segment]:
        """Return the segments that may hold offsets from `offset` on."""
        return self._segments[max(bisect_right(self._segments, offset, key=lambda s: s.base_offset) - 1, 0) :]

    def append(self, batch: bytes) -> None:
        """Append one batch, whose base offset is `end_offset` or greater. Raises StorageError."""
        self.append_all((batch,))

    def append_all(self, batches: Sequence[bytes]) -> None:
        """Append batches with as few writes as their segments allow.

        Raises ValueError for a batch that steps back, and StorageError; then `end_offset` shows which
        batches were appended, and the others can be appended again.
        """
        active = self._segments[-1] if self._segments else None
        run = BatchesForOneWrite()
        end, epochs = self.end_offset, self._epochs
        for batch in batches:
            summary = summarize(batch)
            if summary.base_offset < end:
                raise ValueError(f"a batch at offset {summary.base_offset} of a log that ends at {end}")
            if active is None or self._is_full(active, run, summary):
                if active is not None and run.batches:
                    self._write(active, run, end)
                    run = BatchesForOneWrite()
                active = self._start_segment(summary.base_offset)
            if summary.leader_epoch > epochs.newest_epoch:
                epochs.assign(summary.leader_epoch, summary.base_offset)
            run.add(batch, summary)
            end = summary.next_offset
        if active is not None and run.batches:
            self._write(active, run, end)

    def _is_full(self, active: Segment, run: BatchesForOneWrite, batch: BatchSummary) -> bool:
        """Return whether size, age or offsets forbid that the next batch follows `run` into this segment.

        Age is counted between records, as in Kafka (LogSegment.shouldRoll): an idle log does not roll.
        """
        used = active.size_bytes + run.size_bytes
        if used:
            if used + batch.size_bytes > self._segment_bytes:
                return True
            first = _first_timestamp(active) if active.size_bytes else run.summaries[0].max_timestamp
            # A message from before KIP-32 has no timestamp, and so no age.
            if first >= 0 and batch.max_timestamp - first >= self._segment_ms:
                return True
        return batch.last_offset - active.base_offset > OFFSET_DELTA_MAX

    def _write(self, active: Segment, run: BatchesForOneWrite, end: Offset) -> None:
        try:
            active.write(run)
        except OSError as error:
            raise storage_error(active.path, error, "appending") from error
        self.end_offset = end

    def roll(self) -> None:
        """Begin a new segment at `end_offset`, unless the last one is empty. Raises StorageError."""
        if self._segments and self._segments[-1].size_bytes:
            self._start_segment(self.end_offset)

    def _start_segment(self, base_offset: Offset) -> Segment:
        try:
            if self._is_new:
                self._create_directory()
            if self._segments and not self._segments[-1].size_bytes:
                self._remove(self._segments.pop())
            segment = self._segment(base_offset, create=True)
            segment.cut(0)
        except OSError as error:
            raise storage_error(self.directory, error, "starting a segment") from error
        self._entries_dirty = True
        self._segments.append(segment)
        return segment

    def _create_directory(self) -> None:
        self._fs.mkdir(self.directory)
        self._entries_dirty = True
        text = f"version: 0\ntopic_id: {encode_uuid(self._topic_id)}\n"
        atomic_write(self._fs, self.directory / PARTITION_METADATA_FILE, text.encode())
        self._is_new = False

    def _remove(self, segment: Segment) -> None:
        segment.close()
        for suffix in SEGMENT_SUFFIXES:
            self._fs.remove(segment.path.with_suffix(suffix))
        self._entries_dirty = True

    def write_derived_files(self, *, seal: bool = False) -> None:
        """Write the files derived from the segments, synced for segments that are not written to any more.

        With `seal` all are synced, because another program may read them next. Raises OSError.
        """
        for segment in self._segments:
            rolled = seal or segment is not self._segments[-1]
            segment.index.write(segment, seal=rolled, sync=rolled)
        self._find_epochs()
        self._epochs.write()

    def write_or_remove_indexes_after_recovery(self) -> None:
        """Write the index entries of batches that a recovery has appended, without reading any segment.

        Once the next recovery point is noted, no index before its segment is checked again: so those of full
        segments that a crash may have torn are removed, to be rebuilt from their segments. Raises OSError.
        """
        for segment in self._segments:
            rolled = segment is not self._segments[-1]
            if segment.index.has_unwritten_entries:
                segment.index.write(segment, seal=rolled, sync=rolled)
            elif rolled and segment.index.is_doubtful:
                segment.index.remove_files_to_be_rebuilt()
                self._entries_dirty = True

    def _find_epochs(self) -> None:
        """Read the leader epochs of batches that have not been read yet."""
        if self._epochs_from is None:
            return
        offset = self._epochs_from
        found: list[tuple[LeaderEpoch, Offset]] = []
        for segment in self._reaching(offset):
            for batch in segment.summaries(segment.position_before(offset)):
                if not found or batch.leader_epoch > found[-1][0]:
                    found.append((batch.leader_epoch, batch.base_offset))
        self._epochs.replace_entries_in_memory(
            [entry for entry in self._epochs.entries if entry[1] < offset] + found
        )
        self._epochs_from = None

    def leader_epochs(self) -> LeaderEpochs:
        """Return the leader epochs of all appended batches. Raises OSError."""
        self._find_epochs()
        return self._epochs

    def fsync(self) -> None:
        """Make all appended batches durable. Raises OSError; then nothing since the last fsync is certain."""
        for segment in self._segments:
            segment.fsync()
        if self._entries_dirty:
            self._fs.fsync_dir(self.directory)
            self._fs.fsync_dir(self.directory.parent)
            self._entries_dirty = False
        # Rolled segments are rarely read again.
        for segment in self._segments[:-1]:
            segment.close()

    def truncate_at_position(self, index: int, position: int) -> None:
        """Drop everything behind byte `position` of the segment with this index. Raises OSError."""
        while len(self._segments) > index + 1:
            self._remove(self._segments.pop())
        if self._segments and self._segments[-1].size_bytes > position:
            self._segments[-1].cut(position)

    def truncate(self, offset: Offset) -> None:
        """Cut the log so that it ends at `offset`, which must be where a batch starts or the log ends.

        Raises CorruptLog if a batch lies across `offset`, and OSError.
        """
        while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
            self._remove(self._segments.pop())
        if self._segments:
            last = self._segments[-1]
            position = self._find(last, offset)
            if position < last.size_bytes:
                base_offset = base_offset_of(last.read(position, EXTENT_BYTES))
                if base_offset < offset:
                    raise CorruptLog(
                        last.path,
                        f"a batch from {base_offset} on lies across offset {offset}",
                        position=position,
                    )
            last.cut(position)
        self._bookmark = None
        self.end_offset = offset
        self._epochs.truncate_in_memory(offset)

    def replace_with_cleaned_segment(self, base_offsets: Sequence[Offset]) -> None:
        """Replace segments by the cleaned segment that was made from them, and is on disk.

        They must follow each other, and exclude the last one. Durable on return. After an OSError the log
        must be loaded again.
        """
        index = [segment.base_offset for segment in self._segments].index(base_offsets[0])
        old = self._segments[index : index + len(base_offsets)]
        assert [segment.base_offset for segment in old] == list(base_offsets), "the log has changed"
        assert index + len(base_offsets) < len(self._segments), "the last segment is written to"
        for segment in old:
            segment.close()
        self._expect_less(base_offsets)
        swap_in(self._fs, self.directory, base_offsets[0], base_offsets)
        cleaned = self._segment(base_offsets[0], create=False)
        cleaned.close()
        cleaned.index.sealed = True
        self._segments[index : index + len(base_offsets)] = [cleaned]
        self._bookmark = None

    def _expect_less(self, replaced: Sequence[Offset]) -> None:
        """Note the segments that exist however a swap ends: the first, old or cleaned, and none of the others."""
        if self._noted is None:
            return
        rolled = {base: size for base, size in self._noted.items() if base not in replaced[1:]}
        if replaced[0] in rolled:
            cleaned = Segment(self._fs, self.directory, replaced[0], create=False, suffix=CLEANED_SUFFIX)
            cleaned.close()
            rolled[replaced[0]] = min(rolled[replaced[0]], cleaned.size_bytes)
        write_rolled(self._fs, self.directory, rolled)
        self._noted = rolled

    def set_aside_segments_from(self, index: int) -> list[Segment]:
        """Remove the segments from `index` on from the log, and keep their files under other names.

        The caller sets `end_offset`. Raises OSError.
        """
        taken = self._segments[index:]
        for segment in reversed(taken):
            segment.close()
            self._fs.rename(segment.path, segment.path.with_name(segment.path.name + CUT_SUFFIX))
            for suffix in SEGMENT_SUFFIXES:
                self._fs.remove(segment.path.with_suffix(suffix))
            self._entries_dirty = True
            self._segments.remove(segment)
        return taken

    def set_aside_all_segments(self) -> list[Segment]:
        """Begin an empty log at `noted_start`, and keep the files of all segments under other names.

        Raises OSError.
        """
        if self._noted:
            write_rolled(self._fs, self.directory, {})
            self._noted = {}
        taken = self.set_aside_segments_from(0)
        self._bookmark = None
        last = self._epochs.newest_epoch
        self._epochs.replace_entries_in_memory([(last, self.noted_start)] if last >= 0 else [])
        self._epochs_from = None
        self.end_offset = self.noted_start
        return taken

    def read(self, start_offset: Offset, max_bytes: int) -> tuple[bytes, Offset]:
        """Return whole batches from the one that holds `start_offset` on, and the offset to read from next.

        Returns at most `max_bytes`, but at least one batch; no bytes, and `end_offset`, at the end. The caller
        must skip offsets before `start_offset` in the first batch; an offset before the log's start reads
        from the start. Raises CorruptLog and StorageError.
        """
        start_offset = max(start_offset, self.start_offset)
        try:
            while start_offset < self.end_offset and self._segments:
                index = max(bisect_right(self._segments, start_offset, key=lambda s: s.base_offset) - 1, 0)
                segment = self._segments[index]
                data, next_offset = self._read_segment(segment, start_offset, max_bytes)
                if data:
                    self._refuse_overlap(index, next_offset)
                    return data, next_offset
                if index + 1 == len(self._segments):
                    break
                start_offset = self._segments[index + 1].base_offset
        except OSError as error:
            raise storage_error(self.directory, error, "reading") from error
        return b"", self.end_offset

    def _refuse_overlap(self, index: int, next_offset: Offset) -> None:
        """Raise CorruptLog if the segment that was just read holds offsets of the next one.

        Between segments compaction leaves gaps, but it never makes two of them hold the same offset.
        """
        if index + 1 == len(self._segments) or self._bookmark is None:
            return
        segment, position = self._bookmark.segment, self._bookmark.position
        following = self._segments[index + 1].base_offset
        if next_offset > following or (next_offset == following and position < segment.size_bytes):
            reason = f"it goes on to offset {following} and beyond, where the next segment starts"
            raise CorruptLog(segment.path, reason, position=segment.find(following))

    def locate(self, offset: Offset) -> tuple[Path, int]:
        """Return the file and the start position of the batch that holds `offset`. Raises CorruptLog and OSError."""
        index = max(bisect_right(self._segments, offset, key=lambda s: s.base_offset) - 1, 0)
        segment = self._segments[index]
        return segment.path, segment.find(offset)

    def set_search_bookmark(self, segment: Segment, offset: Offset, position: int) -> None:
        """Start the next search for `offset`, or one after it, at this position."""
        self._bookmark = _Bookmark(offset, segment, position)

    def _find(self, segment: Segment, offset: Offset) -> int:
        mark = self._bookmark
        near = mark.position if mark and mark.segment is segment and mark.offset <= offset else 0
        return segment.find(offset, near)

    def _read_segment(self, segment: Segment, offset: Offset, max_bytes: int) -> tuple[bytes, Offset]:
        position = self._find(segment, offset)
        data = segment.read(position, max(max_bytes, EXTENT_BYTES))
        if not data:
            return b"", offset
        end, next_offset = _whole_batches(data)
        if end == 0 and len(data) >= EXTENT_BYTES and (extent := batch_extent(data, 0)):
            data = segment.read(position, extent.end)
            end, next_offset = _whole_batches(data)
        if end == 0:
            raise CorruptLog(segment.path, "no whole record batch starts here", position=position)
        self.set_search_bookmark(segment, next_offset, position + end)
        return data[:end] if end < len(data) else data, next_offset

    def close_files(self) -> None:
        """Close the files of all segments."""
        for segment in self._segments:
            segment.close()


def _whole_batches(data: bytes) -> tuple[int, Offset]:
    """Return where the last whole batch in `data` ends, and the offset after it."""
    pos, next_offset = 0, Offset(0)
    while pos + EXTENT_BYTES <= len(data):
        extent = batch_extent(data, pos)
        if extent is None or extent.end > len(data):
            break
        next_offset, pos = extent.next_offset, extent.end
    return pos, next_offset


def _first_timestamp(segment: Segment) -> int:
    """Return the time of a segment's first batch, which is read once. Raises StorageError."""
    try:
        return segment.read_first_batch_timestamp()
    except OSError as error:
        raise storage_error(segment.path, error, "reading the first batch") from error
