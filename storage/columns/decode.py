# SPDX-License-Identifier: Apache-2.0
"""The pieces of a chunk as rows in Arrow columns."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from storage.batch import iter_records, read_batch
from storage.batch_format import Batch
from storage.columns.one_by_one import record_row
from storage.columns.schema import COLUMNS
from storage.columns.walk import Chunk, Damage, header
from storage.compression import NAMES
from storage.errors import CorruptBatch

Row = dict[str, Any]


def decode(chunk: Chunk, columns: Sequence[str]) -> pa.RecordBatch:
    """The rows of a chunk, in the order of the log, with the columns of these names."""
    rows = [row for index in range(len(chunk.starts)) for row in piece_rows(chunk, index)]
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    return table.select(list(columns)).combine_chunks().to_batches()[0]


def piece_rows(chunk: Chunk, index: int) -> Iterator[Row]:
    """The rows of one piece, by name."""
    damage = chunk.damages.get(index)
    batch = header(chunk, index)
    start, end = chunk.starts[index], chunk.ends[index]
    common = batch_row(chunk.position + start, end - start, batch, damage)
    if batch is None or damage is not None:
        yield common
        return
    try:
        records = list(iter_records(read_batch(chunk.data[start:end])))
    except CorruptBatch as error:
        yield {**common, "damage": error.reason}
        return
    if not records:
        yield common
    for record in records:
        yield {**common, **record_row(record, control=batch.is_control)}


def batch_row(position: int, size: int, batch: Batch | None, damage: Damage | None) -> Row:
    """The columns of a batch."""
    row: Row = {"position": position, "batch_bytes": size, "tail": False, "crc_ok": True, "damage": None}
    if damage is not None:
        row.update(crc_ok=damage.crc_ok, damage=damage.reason, tail=damage.reason is None)
    if batch is None:
        return row
    row.update(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        transactional=batch.is_transactional,
        control=batch.is_control,
        magic=batch.magic,
        compression=compression_name(batch.compression),
        max_timestamp=batch.max_timestamp,
    )
    return row


def compression_name(number: int) -> str:
    """The codec's name; Kafka knows five."""
    return NAMES[number] if number < len(NAMES) else f"unknown ({number})"
