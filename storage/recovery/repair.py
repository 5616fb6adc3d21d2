# SPDX-License-Identifier: Apache-2.0
"""Repairs one damaged partition of a stopped node: all whole batches stay, the damaged bytes are kept aside.

Lost offsets are replaced by an empty batch, like those of Kafka's own log cleaner: the offsets before and behind stay
the same, and none is assigned twice. Each segment is replaced in one rename, after a copy of the old one is on
disk.
"""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import (
    LOG_SUFFIX,
    OFFSETS_TOPIC,
    ROLLED_SEGMENTS_FILE,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    segment_name,
)
from storage.errors import StorageError, storage_error
from storage.format.batch import iter_records, read_unchecked_batch
from storage.format.batch_format import NONE, OFFSET_DELTA_MAX, encode_batch
from storage.format.record_decoder import RecordDecoder
from storage.format.records import (
    GroupMetadataRecord,
    OffsetCommitRecord,
    TopicOffsetCommits,
    decode_key_and_value,
)
from storage.format.transaction_replay import LogReplay
from storage.journal.journal_registry import remove_clean_mark
from storage.recovery.full_check import (
    CheckedPartition,
    CheckedSegment,
    Damage,
    check_partition,
    iter_all_whole_batches,
)

K = TypeVar("K")
V = TypeVar("V")

README_FILE = "README.txt"
POSSIBLY_OLDER_FILE = "possibly-older.csv"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class PossibleGroupDataLoss(msgspec.Struct):
    """The possible effect of the damage on the partition's groups and offsets.

    A committed offset is certain if its newest remaining record lies behind all damage. Any other may have had a newer
    value in the lost bytes, or have been deleted in them; `older` holds these with their remaining value.
    """

    certain: int = 0
    older: list[tuple[str, str, int, int]] = []
    groups_older: list[str] = []
    named_in_damage: list[str] = []


class Repair(msgspec.Struct):
    """The result of a repair, or its plan."""

    checked: CheckedPartition
    loss: PossibleGroupDataLoss
    aside: Path | None = None

    @property
    def lost_bytes(self) -> int:
        """The number of bytes that hold nothing usable."""
        return sum(damage.size_bytes for damage in self.checked.damages)

    @property
    def lost_offset_count(self) -> int:
        """The number of offsets of the log that are lost, as far as known."""
        return sum((d.next_offset or d.offset) - d.offset for d in self.checked.damages)


def plan_repair(fs: FileSystem, data_dir: Path, partition: Partition, topic: str = OFFSETS_TOPIC) -> Repair:
    """Find the damage and its effect; change nothing. Raises StorageError."""
    try:
        checked = check_partition(fs, data_dir, partition, topic)
        if not fs.exists(checked.directory) and not checked.damages:
            raise StorageError(checked.directory, "there is no such partition")
        if any(name.endswith(SWAP_SUFFIX) for name in fs.listdir(checked.directory)):
            raise StorageError(
                checked.directory, "a compaction was interrupted: start the node once, which ends it"
            )
        loss = _judge(fs, checked) if checked.damages else PossibleGroupDataLoss()
    except OSError as error:
        raise storage_error(data_dir, error, "reading") from error
    return Repair(_with_ends(checked), loss)


def carry_out(fs: FileSystem, data_dir: Path, repair: Repair, now: datetime) -> Repair:
    """Do a repair; the caller holds the directory's lock. Raises StorageError; then it can be done again."""
    checked = repair.checked
    if not checked.damages:
        _settle_names(fs, checked.directory)
        return repair
    first = checked.damages[0]
    aside = checked.directory / f"damaged-{now:%Y%m%dT%H%M%SZ}-at-{first.offset:020d}"
    try:
        remove_clean_mark(fs, data_dir)
        fs.mkdir(aside)
        fs.fsync_dir(data_dir)
        by_path: dict[Path, list[Damage]] = {}
        for damage in checked.damages:
            by_path.setdefault(damage.path, []).append(damage)
        for path in by_path:
            if fs.exists(path):
                atomic_write(fs, aside / path.name, read_file(fs, path))
        atomic_write(fs, aside / README_FILE, _readme(repair).encode())
        atomic_write(fs, aside / POSSIBLY_OLDER_FILE, _csv(repair.loss).encode("utf-8", "replace"))
        fs.fsync_dir(checked.directory)
        segments = {segment.path: segment for segment in checked.segments}
        for path, damages in by_path.items():
            _rewrite(fs, path, segments.get(path), damages)
        # Last, since the list may be the only sign of the damage; the node writes it again.
        fs.remove(checked.directory / ROLLED_SEGMENTS_FILE)
        fs.fsync_dir(checked.directory)
    except OSError as error:
        raise storage_error(checked.directory, error, "repairing") from error
    repair.aside = aside
    return repair


def _settle_names(fs: FileSystem, directory: Path) -> None:
    """Sync the directory, because an earlier repair may have been stopped after its last rename."""
    try:
        fs.fsync_dir(directory)
    except OSError as error:
        raise storage_error(directory, error, "repairing") from error


def _rewrite(fs: FileSystem, path: Path, segment: CheckedSegment | None, damages: list[Damage]) -> None:
    """Rewrite a segment without its damage. A gap before its first offset gets a segment of its own."""
    data = b"" if segment is None else read_file(fs, path)
    parts = []
    for piece in [] if segment is None else segment.pieces:
        start, end = (
            piece if isinstance(piece, tuple) else (piece.position, piece.position + piece.size_bytes)
        )
        repaired = next((d for d in damages if isinstance(piece, Damage) and _same_place(d, piece)), None)
        # Damage that is not to be repaired stays for the next start, which settles it.
        parts.append(data[start:end] if repaired is None else _fill(fs, path, segment, repaired))
    known = [] if segment is None else [piece for piece in segment.pieces if isinstance(piece, Damage)]
    # Offsets that are missing at the end of the log are no piece of any segment.
    parts += [_fill(fs, path, segment, d) for d in damages if not any(_same_place(d, p) for p in known)]
    _replace(fs, path, b"".join(parts))


def _same_place(one: Damage, other: Damage) -> bool:
    return (one.position, one.size_bytes, one.offset) == (other.position, other.size_bytes, other.offset)


def _fill(fs: FileSystem, path: Path, segment: CheckedSegment | None, damage: Damage) -> bytes:
    filler = encode_empty_batches(damage.offset, damage.next_offset)
    if segment is None or damage.offset >= segment.base_offset:
        return filler
    _replace(fs, path.with_name(segment_name(damage.offset)), filler)
    return b""


def _replace(fs: FileSystem, path: Path, data: bytes) -> None:
    for suffix in set(SEGMENT_SUFFIXES) - {LOG_SUFFIX}:
        fs.remove(path.with_suffix(suffix))
    atomic_write(fs, path, data)


def encode_empty_batches(offset: Offset, next_offset: Offset | None) -> bytes:
    """Encode batches without records that cover the offsets from `offset` to before `next_offset`, if any."""
    parts = []
    while next_offset is not None and offset < next_offset:
        delta = min(next_offset - offset - 1, OFFSET_DELTA_MAX)
        parts.append(
            encode_batch(
                b"",
                base_offset=offset,
                last_offset_delta=delta,
                leader_epoch=LeaderEpoch(NONE),
                attributes=0,
                base_timestamp=NONE,
                max_timestamp=NONE,
                count=0,
            )
        )
        offset = Offset(offset + delta + 1)
    return b"".join(parts)


def _with_ends(checked: CheckedPartition) -> CheckedPartition:
    """Return `checked` with an end for damage up to its segment's end: the start of the next segment."""
    bases = [segment.base_offset for segment in checked.segments]
    ended = []
    for damage in checked.damages:
        end = damage.next_offset
        if end is None:
            later = [base for base in bases if base > damage.offset]
            end = later[0] if later else max(checked.recovery_point or damage.offset, damage.offset)
        ended.append(msgspec.structs.replace(damage, next_offset=end))
    return msgspec.structs.replace(checked, damages=ended)


# --- the effect of the damage ---


def _judge(fs: FileSystem, checked: CheckedPartition) -> PossibleGroupDataLoss:
    last = checked.damages[-1]
    replay = LogReplay(RecordDecoder())
    offsets: dict[tuple[GroupId, str, int], tuple[bool, int]] = {}
    groups: dict[GroupId, bool] = {}
    for batch in iter_all_whole_batches(fs, checked):
        # The records that a marker brings into effect lie before it, at an unknown distance.
        certain = batch.base_offset > last.offset and not batch.is_control
        for record in replay.replay(batch):
            if isinstance(record, TopicOffsetCommits):
                for partition, value in record.values.items():
                    offsets[record.group, record.topic, partition] = (certain, value.offset)
            elif isinstance(record, OffsetCommitRecord):
                _note(
                    offsets,
                    (record.group, record.topic, record.partition),
                    None if record.value is None else (certain, record.value.offset),
                )
            elif isinstance(record, GroupMetadataRecord):
                _note(groups, record.group, None if record.value is None else certain)
    return PossibleGroupDataLoss(
        certain=sum(certain for certain, _ in offsets.values()),
        older=sorted((*key, offset) for key, (certain, offset) in offsets.items() if not certain),
        groups_older=sorted(group for group, certain in groups.items() if not certain),
        named_in_damage=sorted(_names_in_damage(fs, checked)),
    )


def _note(found: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        found.pop(key, None)
    else:
        found[key] = value


def _names_in_damage(fs: FileSystem, checked: CheckedPartition) -> set[str]:
    """Return the groups named in damaged batches, as far as their records can still be read; only a hint."""
    names: set[str] = set()
    by_path = {segment.path: segment for segment in checked.segments}
    for damage in checked.damages:
        if damage.path not in by_path or not damage.size_bytes:
            continue
        data = read_file(fs, damage.path)[damage.position : damage.position + damage.size_bytes]
        try:
            for _, _, key, value in iter_records(read_unchecked_batch(data)):
                record = decode_key_and_value(key, value)
                if isinstance(record, OffsetCommitRecord | GroupMetadataRecord):
                    names.add(record.group)
        except ValueError:
            continue
    return names


# --- the written report ---


def _csv(loss: PossibleGroupDataLoss) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["group", "topic", "partition", "offset"])
    writer.writerows(
        (_cell(group), _cell(topic), partition, offset) for group, topic, partition, offset in loss.older
    )
    return out.getvalue()


def _cell(name: str) -> str:
    """Return a client's name as a cell that no spreadsheet takes for a formula: an apostrophe makes it text."""
    return f"'{name}" if name.startswith(_FORMULA) else name


def _readme(repair: Repair) -> str:
    checked = repair.checked
    lines = [
        f"Segments of {checked.directory.name} as they were before `groupkeeper log repair` repaired them.",
        "Nothing reads them any more; keep them until you are sure that the lost records are not needed.",
        "",
        "What could not be read:",
    ]
    lines += [
        f"- {damage.path.name} from byte {damage.position}, {damage.size_bytes} bytes,"
        f" offsets {damage.offset} to {(damage.next_offset or damage.offset) - 1}: {damage.reason}"
        for damage in checked.damages
    ]
    lines += [
        "",
        f"{POSSIBLY_OLDER_FILE}: the committed offsets whose newest record may have been among that, with the value",
        "that is left. A consumer that continues from one of them may read records a second time.",
    ]
    return "\n".join(lines) + "\n"
