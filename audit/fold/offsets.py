# SPDX-License-Identifier: Apache-2.0
"""Folds committed offsets by group, topic and partition: the newest, and whether they ever went back."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from audit.fold.fold_parameters import FoldParameters
from audit.fold.partials import make_partial_batch
from audit.fold.placement import PlacementCheck
from audit.fold.rows import FoldInputRows, Longs, RowsByKey, combine_keys
from audit.fold.transactions import NO_PRODUCER, RowTransactionStatuses


def fold_offsets(
    rows: FoldInputRows, rules: FoldParameters, stands: RowTransactionStatuses, placement: PlacementCheck
) -> Iterator[pa.RecordBatch]:
    """Yield one row for each key, and, for offsets that wait for a marker, one for each key and producer."""
    readable = (
        rows.equality_mask("key_type", "offset_commit")
        & ~rows.non_null_mask("problem")
        & rows.non_null_mask("offset")
    )
    numbers = np.flatnonzero(readable & stands.counts)
    if not len(numbers):
        return
    group, groups = rows.encode_column_as_dictionary("group", numbers)
    topic, _ = rows.encode_column_as_dictionary("topic", numbers)
    placement.note_misplaced_groups(groups, group, numbers)
    pending_of = stands.pending_of[numbers]
    runs = RowsByKey(combine_keys([pending_of, group, topic, rows.longs("topic_partition")[numbers]]))
    first, last = numbers[runs.first], numbers[runs.last]
    waits = pending_of[runs.first]
    offset, tombstone = rows.longs("offset"), rows.bools("tombstone")
    ordered = numbers[runs.order]
    yield make_partial_batch(
        "offset",
        rows.place,
        {
            **_backwards(rows, rules, runs, ordered),
            "group": rows.column_values_at("group", last),
            "topic": rows.column_values_at("topic", last),
            "topic_partition": rows.column_values_at("topic_partition", last),
            "pending_of": pa.array(waits, mask=waits == NO_PRODUCER),
            "first_log_offset": offset[first],
            "first_committed": pa.array(rows.longs("committed_offset")[first], mask=tombstone[first]),
            "first_position": rows.longs("position")[first],
            "count": runs.sizes,
            "tombstones": runs.sums(tombstone[ordered]),
            "cleaned": runs.sums(offset[ordered] < rules.compacted_below_offset(rows.partition_number)),
            "log_offset": offset[last],
            "last_position": rows.longs("position")[last],
            "committed_offset": rows.column_values_at("committed_offset", last),
            "leader_epoch": rows.column_values_at("committed_leader_epoch", last),
            "metadata": rows.column_values_at("metadata", last),
            "commit_timestamp": rows.column_values_at("commit_timestamp", last),
            "expire_timestamp": rows.column_values_at("expire_timestamp", last),
            "timestamp": rows.column_values_at("timestamp", last),
            "tombstone": tombstone[last],
        },
    )


def _backwards(
    rows: FoldInputRows, rules: FoldParameters, runs: RowsByKey, ordered: Longs
) -> dict[str, pa.Array]:
    """Return the columns about commits that are lower than the commit before, with no tombstone between."""
    committed, tombstone = rows.longs("committed_offset")[ordered], rows.bools("tombstone")[ordered]
    back = np.zeros(len(ordered), np.bool_)
    back[1:] = (committed[1:] < committed[:-1]) & ~tombstone[1:] & ~tombstone[:-1] & ~runs.new[1:]
    if rules.since_ms:
        back &= rows.longs("timestamp")[ordered] >= rules.since_ms
    keys, at = runs.first_where(back)
    position = np.zeros(len(runs.starts), np.int64)
    position[keys] = rows.longs("position")[ordered[at]]
    detail = np.full(len(runs.starts), None, object)
    for key, place in zip(keys.tolist(), at.tolist(), strict=True):
        detail[key] = f"{committed[place]} after {committed[place - 1]}"
    none = np.ones(len(runs.starts), np.bool_)
    none[keys] = False
    return {
        "backwards": pa.array(runs.sums(back)),
        "back_position": pa.array(position, mask=none),
        "back_detail": pa.array(detail, pa.string()),
    }
