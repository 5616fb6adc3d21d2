# SPDX-License-Identifier: Apache-2.0
"""Decides which records count: those of a transaction once its marker is a commit, and never if it is an abort.

The marker can be in a later range. Until then the offsets are pending, under the id of their producer.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from audit.fold.partials import make_partial_batch
from audit.fold.rows import Bools, FoldInputRows, Longs, RowsByKey, combine_keys

NO_PRODUCER = -1


class RowTransactionStatuses(NamedTuple):
    """For each row: whether it counts, and the producer whose marker it waits for (NO_PRODUCER: none)."""

    counts: Bools
    pending_of: Longs


def row_transaction_statuses(rows: FoldInputRows) -> RowTransactionStatuses:
    """Return the status of each row at the end of this range."""
    counts = np.ones(rows.count, np.bool_)
    pending_of = np.full(rows.count, NO_PRODUCER, np.int64)
    data, markers = _events(rows)
    if len(data):
        row_of_marker = _next_marker(rows, data, markers)
        pending = row_of_marker < 0
        pending_of[data[pending]] = rows.longs("producer_id")[data[pending]]
        aborted = ~pending & rows.equality_mask("marker", "abort")[row_of_marker]
        counts[data[aborted]] = False
    return RowTransactionStatuses(counts, pending_of)


def _events(rows: FoldInputRows) -> tuple[Longs, Longs]:
    """Return the rows with records of transactions, and those with markers."""
    transactional = rows.bools("transactional") & rows.non_null_mask("offset")
    if not transactional.any():
        nothing = np.zeros(0, np.int64)
        return nothing, nothing
    marker = rows.non_null_mask("marker")
    return np.flatnonzero(transactional & ~rows.bools("control")), np.flatnonzero(marker)


def _next_marker(rows: FoldInputRows, data: Longs, markers: Longs) -> Longs:
    """Return for each of these rows the row of its producer's next marker; -1 if the marker is not in this range."""
    events = np.concatenate([data, markers])
    order = np.lexsort((events, rows.longs("producer_id")[events]))
    producer = rows.longs("producer_id")[events][order]
    is_marker = order >= len(data)
    places = np.flatnonzero(is_marker)
    result = np.full(len(events), -1, np.int64)
    if len(places):
        following = np.searchsorted(places, np.arange(len(events)))
        there = following < len(places)
        place = places[np.minimum(following, len(places) - 1)]
        there &= producer[place] == producer
        result[order[there]] = events[order[place[there]]]
    return result[: len(data)]


def fold_transactions(rows: FoldInputRows, stands: RowTransactionStatuses) -> Iterator[pa.RecordBatch]:
    """Yield the summary of each producer: its first marker in this range, and what is open at the end."""
    data, markers = _events(rows)
    if not len(data) and not len(markers):
        return
    producers = np.unique(rows.longs("producer_id")[np.concatenate([data, markers])])
    first_marker = _first_rows(rows, markers)
    waiting = np.flatnonzero(stands.pending_of != NO_PRODUCER)
    first_open = _first_rows(rows, waiting)
    counts = dict(zip(*np.unique(stands.pending_of[waiting], return_counts=True), strict=True))
    opened = [first_open.get(producer) for producer in producers]
    ended = [first_marker.get(producer) for producer in producers]
    yield make_partial_batch(
        "transaction",
        rows.place,
        {
            "producer_id": producers,
            "first_marker": [None if row is None else rows.value_at("marker", row) for row in ended],
            "has_marker": [row is not None for row in ended],
            "open_since": [None if row is None else rows.value_at("timestamp", row) for row in opened],
            "open_offset": [None if row is None else rows.value_at("offset", row) for row in opened],
            "open_position": [None if row is None else rows.value_at("position", row) for row in opened],
            "open_records": [int(counts.get(producer, 0)) for producer in producers],
        },
    )


def _first_rows(rows: FoldInputRows, events: Longs) -> dict[int, int]:
    """Return the first of these rows for each producer."""
    if not len(events):
        return {}
    producer = rows.longs("producer_id")[events]
    runs = RowsByKey(combine_keys([producer]))
    return dict(zip(producer[runs.first].tolist(), events[runs.first].tolist(), strict=True))
