# SPDX-License-Identifier: Apache-2.0
"""Checks that batches are whole, in order and without holes, and counts the content of a range."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audit.fold.check_sightings import CheckSightings
from audit.fold.fold_parameters import FoldParameters
from audit.fold.partials import make_partial_batch
from audit.fold.rows import HOUR_MS, Bools, FoldInputRows, Longs
from audit.schema import CHANGED_MEANWHILE


def fold_batches(
    rows: FoldInputRows, rules: FoldParameters, seen: CheckSightings
) -> Iterator[pa.RecordBatch]:
    """Yield all summaries that are not about one group."""
    batches = find_batch_start_rows(rows)
    _damage(rows, batches, seen)
    sound = batches[_is_sound(rows)[batches]]
    _order(rows, sound, seen)
    _gaps(rows, batches, rules, seen)
    _epochs(rows, sound, seen)
    _clock(rows, sound, rules, seen)
    yield _range(rows, batches)
    yield from _hours(rows)


def find_batch_start_rows(rows: FoldInputRows) -> Longs:
    """Return the first row of every batch."""
    position = rows.longs("position")
    change = np.ones(rows.count, np.bool_)
    change[1:] = position[1:] != position[:-1]
    return np.flatnonzero(change)


def _is_sound(rows: FoldInputRows) -> Bools:
    """Return the rows of batches whose header can be trusted."""
    return rows.bools("crc_ok", null=False) & ~rows.non_null_mask("damage") & ~rows.bools("tail")


def _damage(rows: FoldInputRows, batches: Longs, seen: CheckSightings) -> None:
    wrong_crc = rows.non_null_mask("crc_ok")[batches] & ~rows.bools("crc_ok", null=True)[batches]
    damaged = rows.non_null_mask("damage")[batches] & ~wrong_crc

    def detail(row: int) -> str:
        return rows.value_at("damage", row) or "the checksum is not that of its bytes"

    # A file that went away while the log was read proves nothing about the log.
    gone = pc.starts_with(rows.get_arrow_column("damage"), CHANGED_MEANWHILE) if damaged.any() else None
    meanwhile = damaged & (
        False if gone is None else pc.fill_null(gone, False).to_numpy(zero_copy_only=False)[batches]
    )
    seen.add_sighting_of_rows("batch_crc", batches[wrong_crc], detail, always=True)
    seen.add_sighting_of_rows("batch_damage", batches[damaged & ~meanwhile], detail, always=True)
    seen.add_sighting_of_rows("changed_meanwhile", batches[meanwhile], detail, always=True)


def _order(rows: FoldInputRows, batches: Longs, seen: CheckSightings) -> None:
    """Note offsets that go back, from batch to batch, inside of a batch, or behind the name of the file."""
    base, last = rows.longs("base_offset")[batches], rows.longs("last_offset")[batches]
    high = np.maximum.accumulate(last)
    back = np.zeros(len(batches), np.bool_)
    overlap = np.zeros(len(batches), np.bool_)
    if len(batches):
        back[1:] = base[1:] < base[:-1]
        overlap[1:] = ~back[1:] & (base[1:] <= high[:-1])
        back[0] = base[0] < rows.place[2]

    def after(row: int) -> str:
        index = int(np.searchsorted(batches, row))
        start = int(rows.longs("base_offset")[row])
        if not index:
            return f"offset {start} in a file whose first is {rows.place[2]}"
        return f"offsets {base[index]} to {last[index]} follow {base[index - 1]} to {high[index - 1]}"

    seen.add_sighting_of_rows("offset_order", batches[back], after, always=True)
    seen.add_sighting_of_rows("offset_overlap", batches[overlap], after, always=True)
    offset, position = rows.longs("offset"), rows.longs("position")
    inside = np.zeros(rows.count, np.bool_)
    inside[1:] = (position[1:] == position[:-1]) & (offset[1:] <= offset[:-1])
    seen.add_sighting_of_rows(
        "offset_order",
        inside,
        lambda row: f"offset {offset[row]} follows {offset[row - 1]} in one batch",
        always=True,
    )


def _gaps(rows: FoldInputRows, batches: Longs, rules: FoldParameters, seen: CheckSightings) -> None:
    """Note offsets that are missing, at or above the offset up to which compaction has been."""
    sound = _is_sound(rows)
    cleaned_to = rules.compacted_below_offset(rows.partition_number)
    base, last = rows.longs("base_offset"), rows.longs("last_offset")
    offset, has_record = rows.longs("offset"), rows.non_null_mask("offset")
    # the offset with which a row must start is the one after the row before it; a damaged batch leaves it open
    expected = np.where(has_record, offset, last) + 1
    first_of_batch = np.zeros(rows.count, np.bool_)
    first_of_batch[batches] = True
    start = np.where(has_record, offset, base)
    missing = np.zeros(rows.count, np.int64)
    missing[1:] = start[1:] - expected[:-1]
    believed = sound.copy()
    believed[1:] &= sound[:-1]
    if rows.count:
        believed[0] = False
    # between batches the hole may start in the batch before; the span of a batch without records is one as well
    hole = believed & (missing > 0) & (start > cleaned_to)
    emptied = sound & ~has_record & (last >= cleaned_to) & ~rows.bools("control")
    head = sound & first_of_batch & has_record & (offset > base) & (base >= cleaned_to) & ~hole
    seen.add_sighting_of_rows(
        "offset_gap",
        hole,
        lambda row: f"offsets {expected[row - 1]} to {start[row] - 1} are missing",
        always=True,
    )
    seen.add_sighting_of_rows(
        "offset_gap", head, lambda row: f"offsets {base[row]} to {offset[row] - 1} are missing", always=True
    )
    seen.add_sighting_of_rows(
        "offset_gap",
        emptied,
        lambda row: f"a batch has no record of its offsets {base[row]} to {last[row]}",
        always=True,
    )


def _epochs(rows: FoldInputRows, batches: Longs, seen: CheckSightings) -> None:
    epoch = rows.longs("leader_epoch")[batches]
    high = np.maximum.accumulate(epoch) if len(epoch) else epoch
    back = np.zeros(len(batches), np.bool_)
    back[1:] = (epoch[1:] < high[:-1]) & (epoch[1:] >= 0)
    of = dict(
        zip(batches[back].tolist(), zip(epoch[back].tolist(), high[back].tolist(), strict=True), strict=True)
    )
    seen.add_sighting_of_rows(
        "leader_epoch_back",
        batches[back],
        lambda row: f"leader epoch {of[row][0]} after {of[row][1]}",
        always=True,
    )


def _clock(rows: FoldInputRows, batches: Longs, rules: FoldParameters, seen: CheckSightings) -> None:
    time = rows.longs("max_timestamp")[batches]
    jump = np.zeros(len(batches), np.bool_)
    jump[1:] = (time[:-1] - time[1:] > rules.clock_back_ms) & (time[1:] >= 0)
    before = np.roll(time, 1)
    of = dict(zip(batches[jump].tolist(), (before - time)[jump].tolist(), strict=True))
    seen.add_sighting_of_rows(
        "clock_jump",
        batches[jump],
        lambda row: f"a batch is {of[row] / 1000:.0f} s older than the one before it",
    )


def _range(rows: FoldInputRows, batches: Longs) -> pa.RecordBatch:
    sound = _is_sound(rows)
    good = batches[sound[batches]]
    record = rows.non_null_mask("offset")
    time = rows.longs("timestamp")[record]
    epochs, times = rows.longs("leader_epoch")[good], rows.longs("max_timestamp")[good]
    last_row = rows.count - 1
    sizes = rows.longs("batch_bytes", null=0)[batches]
    # an incomplete batch at the end will be read again, once it is whole
    whole = ~rows.bools("tail")[batches]
    ends = rows.longs("position")[batches] + sizes
    next_offset = int(rows.longs("last_offset")[good].max()) + 1 if len(good) and sound[last_row] else None

    def kind(name: str) -> int:
        return int(np.count_nonzero(rows.equality_mask("key_type", name) & record))

    commits, groups, markers = kind("offset_commit"), kind("group_metadata"), kind("transaction_marker")
    records = int(np.count_nonzero(record))
    columns = {
        "end_position": int(ends[whole].max(initial=rows.place[3])),
        "first_base_offset": int(rows.longs("base_offset")[0]) if sound[0] else None,
        "next_offset": next_offset,
        "first_position": rows.place[3],
        "first_epoch": int(epochs[0]) if len(epochs) else None,
        "max_epoch": int(epochs.max()) if len(epochs) else None,
        "first_max_timestamp": int(times[0]) if len(times) else None,
        "last_max_timestamp": int(times[-1]) if len(times) else None,
        "batches": int(np.count_nonzero(whole)),
        "bytes": int(sizes[whole].sum()),
        "records": records,
        "commits": commits,
        "group_records": groups,
        "markers": markers,
        "others": records - commits - groups - markers,
        "tombstones": int(np.count_nonzero(rows.bools("tombstone"))),
        "oldest_timestamp": int(time.min()) if len(time) else None,
        "newest_timestamp": int(time.max()) if len(time) else None,
    }
    return make_partial_batch("range", rows.place, {name: [value] for name, value in columns.items()})


def _hours(rows: FoldInputRows) -> Iterator[pa.RecordBatch]:
    record = rows.non_null_mask("offset")
    time = rows.longs("timestamp")[record]
    if not len(time):
        return
    hours, which = np.unique(time // HOUR_MS, return_inverse=True)
    commit = (rows.equality_mask("key_type", "offset_commit") & ~rows.bools("tombstone"))[record]
    group = rows.equality_mask("key_type", "group_metadata")[record]
    yield make_partial_batch(
        "hour",
        rows.place,
        {
            "hour_ms": hours * HOUR_MS,
            "commits": np.bincount(which, commit, len(hours)).astype(np.int64),
            "group_records": np.bincount(which, group, len(hours)).astype(np.int64),
            "records": np.bincount(which, minlength=len(hours)),
        },
    )
