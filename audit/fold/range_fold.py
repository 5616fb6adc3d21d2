# SPDX-License-Identifier: Apache-2.0
"""The fold itself, from rows of the source to partial summaries."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa

from audit.fold.batch_checks import fold_batches
from audit.fold.check_sightings import CheckSightings
from audit.fold.fold_parameters import FoldParameters
from audit.fold.groups import fold_groups_and_rebalances
from audit.fold.offsets import fold_offsets
from audit.fold.placement import PlacementCheck
from audit.fold.record_checks import note_problem_records
from audit.fold.rows import FoldInputRows
from audit.fold.transactions import fold_transactions, row_transaction_statuses
from protocol.newtypes import Offset
from storage.disk.layout import parse_segment


def fold_ranges(batches: Iterable[pa.RecordBatch], rules: FoldParameters) -> Iterator[pa.RecordBatch]:
    """Yield partial summaries (PARTIALS) of rows in the order of the log; memory is that of `chunk_rows` rows.

    `batches` have at least the columns `NEEDED`. A range ends when the file changes, or with `chunk_rows` rows.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in _cut(_by_file(batches), rules.chunk_rows):
        if waiting and _starts_anew(waiting, batch, rules.chunk_rows):
            yield from _fold_range(waiting, rules)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield from _fold_range(waiting, rules)


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        files = batch.column("file").dictionary_encode()
        if len(files.dictionary) == 1:
            yield batch
            continue
        indices = files.indices.to_pylist()
        start = 0
        for end in range(1, len(indices) + 1):
            if end == len(indices) or indices[end] != indices[start]:
                yield batch.slice(start, end - start)
                start = end


def _cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in pieces of about `rows` rows, none of which ends within a batch of the log."""
    for batch in batches:
        start = 0
        if batch.num_rows > rows:
            position = batch.column("position").to_numpy()
            starts = np.flatnonzero(position[1:] != position[:-1]) + 1
            while (place := np.searchsorted(starts, start + rows)) < len(starts):
                yield batch.slice(start, int(starts[place]) - start)
                start = int(starts[place])
        yield batch.slice(start)


def _starts_anew(waiting: list[pa.RecordBatch], batch: pa.RecordBatch, chunk_rows: int) -> bool:
    if batch.column("file")[0] != waiting[0].column("file")[0]:
        return True
    # a batch of the log is not cut, so that gaps inside of it are found
    same_batch = batch.column("position")[0] == waiting[-1].column("position")[-1]
    return not same_batch and sum(part.num_rows for part in waiting) >= chunk_rows


def _fold_range(batches: list[pa.RecordBatch], rules: FoldParameters) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(batches).unify_dictionaries()
    file = table["file"][0].as_py()
    segment = parse_segment(PurePosixPath(file).name)
    if segment is None:  # no segment, but a journal, whose batches follow those of lower offsets
        segment = Offset(table["base_offset"][0].as_py() or 0)
    place = (table["partition"][0].as_py(), file, segment, table["position"][0].as_py())
    rows = FoldInputRows(table, place)
    seen = CheckSightings(rows, rules.since_ms)
    stands = row_transaction_statuses(rows)
    placement = PlacementCheck(rows, rules, seen)
    yield from fold_batches(rows, rules, seen)
    yield from note_problem_records(rows, rules, seen)
    yield from fold_transactions(rows, stands)
    yield from fold_offsets(rows, rules, stands, placement)
    yield from fold_groups_and_rebalances(rows, rules, placement)
    yield from seen.partials()
