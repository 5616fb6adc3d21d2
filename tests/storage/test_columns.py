# SPDX-License-Identifier: Apache-2.0
"""The bulk path says the same as the slow one, of every kind of record and of damaged ones."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import Offset
from storage.columns.batch_finder import Chunk
from storage.columns.decode import decode
from storage.columns.record_by_record_decoder import batch_rows
from storage.columns.record_finder import BOUNDS, BulkReadLimits
from storage.columns.schema import BATCH_COLUMNS, COLUMNS, RECORD_COLUMNS
from storage.format.batch import iter_batches
from storage.format.batch_format import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from storage.format.compression import compress
from storage.format.records import (
    GroupMetadataRecord,
    OffsetAndMetadata,
    OffsetCommitRecord,
    encode_group_metadata,
    encode_offset_value,
    encode_record_key,
    encode_record_value,
)
from storage.format.varints import encode_signed_varint
from tests.storage import strategies
from tests.storage.headers import with_header
from tests.storage.test_old_messages import message_set

Pair = tuple[bytes | None, bytes | None]
NOW = 1_700_000_000_000


def record(pair: Pair, offset_delta: int, timestamp_delta: int, headers: bytes = b"\0") -> bytes:
    """A record as it lies in a batch."""
    body = b"\0" + encode_signed_varint(timestamp_delta) + encode_signed_varint(offset_delta)
    for field in pair:
        body += encode_signed_varint(-1) if field is None else encode_signed_varint(len(field)) + field
    return encode_signed_varint(len(body + headers)) + body + headers


def batch(
    body: bytes, count: int, *, base_offset: int = 0, attributes: int = 0, delta: int | None = None
) -> bytes:
    """A batch around the bytes of `count` records."""
    if attributes & 7:
        body = compress(attributes & 7, body)
    how = {"base_offset": base_offset, "attributes": attributes, "epoch": 3, "max_timestamp": NOW + 9}
    return with_header(body, count, delta=delta, producer=(77, 2, 5), **how)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Key and value of a record in any version, now and then with a byte that is wrong or missing."""
    one = draw(strategies.records)
    key: bytes | None = encode_record_key(one)
    value = encode_record_value(one)
    version = draw(st.integers(0, 4))
    if isinstance(one, OffsetCommitRecord):
        key = draw(st.sampled_from([b"\0\0", b"\0\1"])) + key[2:] if key else key
        value = None if one.value is None else encode_offset_value(one.value, version)
    elif isinstance(one, GroupMetadataRecord):
        value = None if one.value is None else encode_group_metadata(one.value, version)
    return draw(hurt(key)), draw(hurt(value))


@st.composite
def hurt(draw: st.DrawFn, data: bytes | None) -> bytes | None:
    """The same bytes, mostly."""
    match draw(st.integers(0, 11)):
        case 0 if data:
            return data[: draw(st.integers(0, len(data) - 1))]
        case 1 if data:
            at = draw(st.integers(0, min(len(data) - 1, 60)))
            return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        case 2 if data is not None:
            return data + draw(st.binary(max_size=4))
        case 3:
            return draw(st.none() | st.binary(max_size=20))
    return data


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch or message with a right checksum, and mostly with right records in it."""
    content = draw(st.lists(pairs(), max_size=8))
    if draw(st.integers(0, 9)) == 0 and content:
        return message_set(draw(st.sampled_from([0, 1])), pairs=content)
    delta = st.integers(-3, 200_000) | strategies.int64s
    parts = [
        record(
            pair,
            number if draw(st.booleans()) else draw(delta),
            draw(delta),
            draw(st.sampled_from([b"\0", b"\2\2h\2v"])),
        )
        for number, pair in enumerate(content)
    ]
    body = b"".join(parts)
    if draw(st.integers(0, 5)) == 0:
        body = draw(hurt(body)) or b""
    flags = draw(st.sampled_from([0, 0, 0, TRANSACTIONAL, CONTROL | TRANSACTIONAL, LOG_APPEND_TIME]))
    count = len(content) if draw(st.integers(0, 9)) else draw(st.integers(-1, 12))
    base_offset = draw(st.integers(0, 1 << 40) | strategies.int64s.map(abs))
    return batch(body, count, base_offset=base_offset % (1 << 63), attributes=flags | draw(st.integers(0, 4)))


def chunk_of(*data: bytes, position: int = 1_000) -> Chunk:
    """A chunk of good pieces."""
    starts, ends, end = [], [], 0
    for one in data:
        pieces = (
            [(0, len(one))] if one[16] == 2 else [(found.position, found.end) for found in iter_batches(one)]
        )
        starts += [end + start for start, _ in pieces]
        ends += [end + stop for _, stop in pieces]
        end += len(one)
    return Chunk(b"".join(data), position, starts, ends, {})


def decoded(
    chunk: Chunk, columns: Sequence[str] = tuple(COLUMNS.names), bounds: BulkReadLimits = BOUNDS
) -> list[dict[str, Any]]:
    """What the bulk path says, as Python has it."""
    table = pa.Table.from_batches(list(decode(chunk, columns, bounds)))
    return list(table.cast(pa.schema([COLUMNS.field(name) for name in columns])).to_pylist())


def one_by_one(chunk: Chunk) -> list[dict[str, Any]]:
    """What the slow path says of the columns of records, and of damage."""
    rows = []
    for start, end in zip(chunk.starts, chunk.ends, strict=True):
        found, damage = batch_rows(chunk.data[start:end])
        rows += [{"damage": damage, **row} for row in found]
    return list(pa.Table.from_pylist(rows, pa.schema([*RECORD_COLUMNS, COLUMNS.field("damage")])).to_pylist())


@given(st.lists(batches(), min_size=1, max_size=6), st.sampled_from([1, 3, 100]))
def test_both_ways_say_the_same(data: list[bytes], many: int) -> None:
    chunk = chunk_of(*data)
    columns = [*RECORD_COLUMNS.names, "damage"]
    assert decoded(chunk, columns, BulkReadLimits(many=many)) == one_by_one(chunk)


@given(st.lists(strategies.offset_records, min_size=1, max_size=300), st.integers(0, 4), st.integers(0, 4))
def test_offsets_of_every_version_and_compression(
    records: list[OffsetCommitRecord], version: int, codec: int
) -> None:
    body = b"".join(
        record(
            (encode_record_key(one), None if one.value is None else encode_offset_value(one.value, version)),
            number,
            -number,
        )
        for number, one in enumerate(records)
    )
    chunk = chunk_of(
        batch(body, len(records), attributes=codec), batch(body, len(records), base_offset=5_000)
    )
    rows = decoded(chunk, [*RECORD_COLUMNS.names, "damage"])
    assert rows == one_by_one(chunk)
    assert [row["group"] for row in rows] == 2 * [one.group for one in records]
    assert [row["problem"] for row in rows] == [None] * len(rows)


def test_the_columns_of_a_batch() -> None:
    plain = record((b"\0\2\0\1g", None), 4, 7)
    chunk = chunk_of(
        batch(plain, 1, base_offset=100, attributes=TRANSACTIONAL | 4, delta=6),
        message_set(1, pairs=[(b"\0\2\0\1h", None)]),
    )
    rows = decoded(chunk)
    assert {name: rows[0][name] for name in BATCH_COLUMNS.names} == {
        "position": 1_000,
        "batch_bytes": chunk.ends[0],
        "base_offset": 100,
        "last_offset": 106,
        "leader_epoch": 3,
        "producer_id": 77,
        "producer_epoch": 2,
        "transactional": True,
        "control": False,
        "magic": 2,
        "compression": "zstd",
        "crc_ok": True,
        "damage": None,
        "tail": False,
        "max_timestamp": NOW + 9,
    }
    assert (rows[0]["offset"], rows[0]["timestamp"], rows[0]["group"]) == (104, NOW + 7, "g")
    old = rows[1]
    assert (old["magic"], old["leader_epoch"], old["producer_id"], old["group"]) == (1, -1, -1, "h")


@pytest.mark.parametrize(("kind", "marker"), [(0, "abort"), (1, "commit"), (9, None)])
def test_the_marker_of_a_transaction(kind: int, marker: str | None) -> None:
    key, value = b"\0\0" + kind.to_bytes(2, "big"), bytes(6)
    (row,) = decoded(chunk_of(batch(record((key, value), 0, 0), 1, attributes=TRANSACTIONAL | CONTROL)))
    assert (row["key_type"], row["marker"], row["tombstone"]) == ("transaction_marker", marker, False)
    assert (row["problem"] is None) == (marker is not None)


def test_a_batch_that_compaction_emptied_has_one_row() -> None:
    (row,) = decoded(chunk_of(batch(b"", 0, base_offset=7, delta=3)))
    assert (row["base_offset"], row["last_offset"], row["offset"], row["damage"]) == (7, 10, None, None)


def test_much_that_was_compressed_comes_in_parts() -> None:
    value = encode_offset_value(OffsetAndMetadata(Offset(1), -1, "m" * 500, NOW), 3)
    body = record((b"\0\1\0\1g\0\1t\0\0\0\7", value), 0, 0)
    chunk = chunk_of(*(batch(body, 1, base_offset=number, attributes=1) for number in range(9)))
    parts = list(decode(chunk, ["offset", "topic_partition"], BulkReadLimits(bodies_bytes=1_000)))
    assert [part.num_rows for part in parts] == [2, 2, 2, 2, 1]
    assert [row for part in parts for row in part.column(0).to_pylist()] == list(range(9))
