# SPDX-License-Identifier: Apache-2.0
"""Folds the records of each group: the newest one, generations, rebalances by the hour, and members' arrivals."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audit.fold.fold_parameters import FoldParameters
from audit.fold.partials import make_partial_batch
from audit.fold.placement import PlacementCheck
from audit.fold.rows import HOUR_MS, Bools, FoldInputRows, Longs, RowsByKey, combine_keys, encode_dictionary


def fold_groups_and_rebalances(
    rows: FoldInputRows, rules: FoldParameters, placement: PlacementCheck
) -> Iterator[pa.RecordBatch]:
    """Yield the summaries of kinds `group`, `rebalances` and `arrivals`."""
    readable = (
        rows.equality_mask("key_type", "group_metadata")
        & ~rows.non_null_mask("problem")
        & rows.non_null_mask("offset")
    )
    numbers = np.flatnonzero(readable)
    if not len(numbers):
        return
    group, groups = rows.encode_column_as_dictionary("group", numbers)
    placement.note_misplaced_groups(groups, group, numbers)
    runs = RowsByKey(combine_keys([group]))
    ordered = numbers[runs.order]
    generation, tombstone = rows.longs("generation")[ordered], rows.bools("tombstone")[ordered]
    follows = ~runs.new & ~tombstone & ~np.roll(tombstone, 1)
    before = np.roll(generation, 1)
    count_rebalance = (follows & (generation > before)) | (runs.new & ~tombstone & (generation == 1))
    recent = rows.longs("timestamp")[ordered] >= rules.since_ms
    back = follows & (generation < before) & recent
    yield _group_rows(rows, rules, runs, ordered, back, count_rebalance & recent)
    yield from _rebalances(rows, ordered[count_rebalance & recent])
    yield from _arrivals(rows, rules, runs, ordered)


def _group_rows(
    rows: FoldInputRows,
    rules: FoldParameters,
    runs: RowsByKey,
    ordered: Longs,
    back: Bools,
    count_rebalance: Bools,
) -> pa.RecordBatch:
    first, last = ordered[runs.starts], ordered[runs.starts + runs.sizes - 1]
    offset, tombstone, generation = rows.longs("offset"), rows.bools("tombstone"), rows.longs("generation")
    keys, at = runs.first_where(back)
    position = np.full(len(first), None, object)
    detail = np.full(len(first), None, object)
    for key, place in zip(keys.tolist(), at.tolist(), strict=True):
        position[key] = int(rows.longs("position")[ordered[place]])
        detail[key] = f"generation {generation[ordered[place]]} after {generation[ordered[place - 1]]}"
    newest = ("generation", "protocol_type", "protocol", "leader", "state_timestamp", "members", "timestamp")
    return make_partial_batch(
        "group",
        rows.place,
        {
            **{name: rows.column_values_at(name, last) for name in newest},
            "group": rows.column_values_at("group", last),
            "first_log_offset": offset[first],
            "first_generation": pa.array(generation[first].astype(np.int32), mask=tombstone[first]),
            "first_position": rows.longs("position")[first],
            "count": runs.sizes,
            "tombstones": runs.sums(tombstone[ordered]),
            "cleaned": runs.sums(offset[ordered] < rules.compacted_below_offset(rows.partition_number)),
            "rebalances": runs.sums(count_rebalance),
            "backwards": runs.sums(back),
            "back_position": pa.array(position, pa.int64()),
            "back_detail": pa.array(detail, pa.string()),
            "log_offset": offset[last],
            "last_position": rows.longs("position")[last],
            "tombstone": tombstone[last],
        },
    )


def _rebalances(rows: FoldInputRows, numbers: Longs) -> Iterator[pa.RecordBatch]:
    if not len(numbers):
        return
    group, _ = rows.encode_column_as_dictionary("group", numbers)
    hour = rows.longs("timestamp")[numbers] // HOUR_MS
    runs = RowsByKey(combine_keys([group, hour]))
    yield make_partial_batch(
        "rebalances",
        rows.place,
        {
            "group": rows.column_values_at("group", numbers[runs.first]),
            "hour_ms": hour[runs.first] * HOUR_MS,
            "count": runs.sizes,
        },
    )


def _arrivals(
    rows: FoldInputRows, rules: FoldParameters, runs: RowsByKey, ordered: Longs
) -> Iterator[pa.RecordBatch]:
    """Yield the members whose id was not in their group's record before the current one.

    The first record of a group in a range has no record before it, so its members have not arrived.
    """
    members = rows.column_values_at("members", ordered)
    inside = members.flatten()
    if not len(inside):
        return
    record = pc.list_parent_indices(members).to_numpy(zero_copy_only=False).astype(np.int64)
    member, _ = encode_dictionary(inside.field("member_id"))
    key = np.repeat(np.arange(len(runs.starts)), runs.sizes)[record]
    sightings = RowsByKey(combine_keys([key, member]))
    at = record[sightings.order]
    new = np.ones(len(record), np.bool_)
    new[1:] = sightings.new[1:] | (at[1:] != at[:-1] + 1)
    arrived = np.zeros(len(record), np.bool_)
    arrived[sightings.order] = new
    arrived &= ~runs.new[record]
    who = _names(inside)
    time = rows.longs("timestamp")[ordered][record]
    arrived &= time >= rules.since_ms
    name, _ = encode_dictionary(who)
    together = RowsByKey(combine_keys([name, record]))  # the members of one name in one record
    at_once = np.zeros(len(record), np.int64)
    at_once[together.order] = np.repeat(together.sizes, together.sizes)
    hours = RowsByKey(combine_keys([key, name, time // HOUR_MS]))
    arrivals = hours.sums(arrived[hours.order])
    some = arrivals > 1
    if not some.any():
        return
    first = hours.first[some]
    yield make_partial_batch(
        "arrivals",
        rows.place,
        {
            "group": rows.column_values_at("group", ordered[record[first]]),
            "who": who.take(pa.array(first)),
            "hour_ms": time[first] // HOUR_MS * HOUR_MS,
            "arrivals": arrivals[some],
            "together": np.maximum.reduceat(at_once[hours.order], hours.starts)[some],
        },
    )


def _names(members: pa.StructArray) -> pa.Array:
    """Return the names of members, which stay the same when a member starts again."""
    dynamic = pc.binary_join_element_wise(members.field("client_id"), members.field("client_host"), " at ")
    return pc.coalesce(members.field("group_instance_id"), dynamic)
