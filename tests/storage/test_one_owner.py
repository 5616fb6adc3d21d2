# SPDX-License-Identifier: Apache-2.0
"""Where a format is read or written in two ways, one of them fast, both say the same: of good bytes and of bad ones."""

from collections.abc import Callable, Iterable
from pathlib import Path
from struct import Struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.newtypes import GroupId, LeaderEpoch, Offset
from storage.columns.batches import BatchColumns
from storage.columns.record_columns import read_record_fields
from storage.columns.record_finder import find_records
from storage.errors import CorruptBatch, CorruptRecord
from storage.format import batch_format, record_decoder
from storage.format.batch import (
    Batch,
    BatchBuilder,
    decompress_batch_body,
    iter_records,
    read_checked_batch,
    read_unchecked_batch,
)
from storage.format.batch_format import (
    EXTENT_BYTES,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    base_offset_of,
    batch_extent,
    encode_batch,
    has_producer,
    is_transactional,
    length_and_checksum,
    max_timestamp,
    next_offset_of,
    record_count,
    summarize,
)
from storage.format.offset_record import (
    choose_value_version,
    decode_offset_record,
    encode_offset_key,
    encode_offset_value,
    encode_partition_and_value,
    find_name_ends,
    key_size_and_prefix,
)
from storage.format.record_body import (
    NO_HEADERS,
    RawRecord,
    encode_attributes_and_deltas,
    encode_field,
    encode_record_with_timestamp_delta,
    find_field_positions,
    iter_body,
    raw_records,
    size_field,
)
from storage.format.record_decoder import RecordDecoder
from storage.format.records import (
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    decode_key_and_value,
)
from storage.format.varints import TABLE_SIZE, ZIGZAG, encode_signed_varint, read_zigzag
from tests.storage import strategies
from tests.storage.headers import NOW, with_header
from tests.storage.test_columns import batches, chunk_of, record
from tests.storage.test_old_messages import message_set
from tests.support.calls import calls_of

Outcome = tuple[list[Any], type[ValueError] | None]
ROOT = Path(batch_format.__file__).parents[2]
int16s = st.integers(-(1 << 15), (1 << 15) - 1)


def outcome(items: Iterable[Any]) -> Outcome:
    """What comes, and the kind of damage that ends it, if any."""
    found: list[Any] = []
    try:
        found.extend(items)
    except (CorruptBatch, CorruptRecord) as error:
        return found, type(error)
    return found, None


def of_version_2(data: bytes) -> Batch | None:
    """The batch, unless it is of an older format, has a header of nonsense or cannot be decompressed."""
    try:
        batch = read_unchecked_batch(data)
        if batch.magic != MAGIC:
            return None
        decompress_batch_body(batch)
    except CorruptBatch:
        return None
    return batch


def raw_with_time(batch: Batch, found: RawRecord) -> tuple[int, int, bytes | None, bytes | None]:
    fixed = batch.attributes & LOG_APPEND_TIME
    return found.offset, batch.max_timestamp if fixed else found.timestamp, found.key, found.value


@st.composite
def damaged_batches(draw: st.DrawFn) -> bytes:
    """Offsets as they nearly always are, and in between others, with some bytes of the records changed."""
    few = st.sampled_from(
        [OffsetAndMetadata(Offset(5), 2, "", NOW), OffsetAndMetadata(Offset(6), -1, "m", NOW), None]
    )
    wanted = draw(st.lists(st.tuples(st.integers(0, 5), few), min_size=1, max_size=12))
    builder = BatchBuilder()
    builder.append_in_one_batch(
        [OffsetCommitRecord(GroupId("group"), "topic", partition, value) for partition, value in wanted]
    )
    (data,) = builder.build(Offset(draw(st.sampled_from([0, 1 << 40]))), LeaderEpoch(1), NOW)
    body = bytearray(data[HEADER_BYTES:])
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(body) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                body[at] = draw(st.sampled_from([0, 1, 2, 3, 48, 0x7F, 0x80, 0x81, 0xFF]))
            case 1:
                body[at] ^= 1 << draw(st.integers(0, 7))
            case 2:
                del body[at : at + draw(st.integers(1, 40))]
            case _:
                body[at:at] = draw(st.binary(min_size=1, max_size=12))
        if not body:
            break
    count = len(wanted) + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    return with_header(bytes(body), count, base_offset=base_offset_of(data))


every_batch = batches() | damaged_batches()
slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow])


# --- the records of a batch -----------------------------------------------------------------------------------------


@slow_to_draw
@given(every_batch)
def test_the_unrolled_way_reads_what_the_plain_one_does(data: bytes) -> None:
    batch = of_version_2(data)
    if batch is None:
        return
    body = decompress_batch_body(batch)
    plain, damage = outcome(raw_records(batch, body))
    assert outcome(iter_body(batch, body)) == ([raw_with_time(batch, found) for found in plain], damage)


@slow_to_draw
@given(every_batch)
def test_the_loader_finds_the_key_where_the_plain_way_does(data: bytes) -> None:
    batch = of_version_2(data)
    if batch is None:
        return
    body = decompress_batch_body(batch)
    for found in outcome(raw_records(batch, body))[0]:
        delta, key, end = find_field_positions(body, found.start)
        assert end == found.end
        assert delta == found.after_timestamp
        offset_delta, after_delta = read_zigzag(body, delta)
        assert (batch.base_offset + offset_delta, after_delta) == (found.offset, key)


def loaded(data: bytes) -> Outcome:
    """What the loader makes of it: all or nothing."""
    return outcome(RecordDecoder().decode_batch(read_checked_batch(data)) for _ in range(1))


def one_by_one(data: bytes) -> Outcome:
    """What the ordinary codecs make of it, all or nothing; markers are no records."""
    batch = read_checked_batch(data)
    return outcome(
        []
        if batch.is_control
        else [decode_key_and_value(key, value) for _, _, key, value in iter_records(batch)]
        for _ in range(1)
    )


@slow_to_draw
@given(every_batch)
def test_the_loader_reads_what_the_ordinary_codecs_do(data: bytes) -> None:
    assert loaded(data) == one_by_one(data)


@given(st.lists(st.lists(strategies.offset_records, min_size=1, max_size=5), min_size=1, max_size=5))
def test_the_loader_knows_names_from_batches_before(appends: list[list[Record]]) -> None:
    loader = RecordDecoder()
    for records in [*appends, *appends]:
        builder = BatchBuilder(1 << 24)
        builder.append_in_one_batch(records)
        (data,) = builder.build(Offset(0), LeaderEpoch(0), NOW)
        assert (loader.decode_batch(read_checked_batch(data)), None) == (one_by_one(data)[0][0], None)


@pytest.mark.slow  # not on the compiled build, of whose calls the interpreter says nothing
def test_the_fast_ways_are_taken() -> None:
    """Else all of this would compare the plain way with itself."""
    values = {partition: OffsetAndMetadata(Offset(partition), -1, "", NOW) for partition in range(300)}
    builder = BatchBuilder()
    builder.append_offsets([TopicOffsetCommits(GroupId("group"), "topic", values)])
    (data,) = builder.build(Offset(0), LeaderEpoch(0), NOW)
    with calls_of("_load_one", record_decoder) as slow:
        runs = RecordDecoder().decode_with_commits_merged_by_topic(read_checked_batch(data))
    assert slow == []
    assert len(runs) <= 3  # a longer delta begins another run
    chunk = chunk_of(data)
    assert find_records(chunk, BatchColumns(chunk), 0, ()).slow == {}


@given(
    st.integers(0, 100_000),
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=9_000),
    st.integers(-(1 << 40), 1 << 40),
)
def test_a_record_that_is_written_is_read(
    delta: int, key: bytes | None, value: bytes | None, timestamp_delta: int
) -> None:
    rest = encode_attributes_and_deltas(delta) + encode_field(key) + encode_field(value) + NO_HEADERS
    written = size_field(len(rest)) + rest
    assert written == record((key, value), delta, 0)
    batch = read_unchecked_batch(with_header(written, 1, base_offset=7, timestamp=NOW))
    (found,) = raw_records(batch, written)
    assert raw_with_time(batch, found) == (7 + delta, NOW, key, value)
    assert (found.start, found.end, found.is_tombstone) == (0, len(written), value is None)
    assert encode_record_with_timestamp_delta(written, found, timestamp_delta) == record(
        (key, value), delta, timestamp_delta
    )


@given(st.integers(0, TABLE_SIZE - 1))
def test_the_table_of_varints_has_what_would_be_computed(number: int) -> None:
    assert ZIGZAG[number] == encode_signed_varint(number) == size_field(number)
    assert encode_attributes_and_deltas(number) == b"\0\0" + encode_signed_varint(number)


# --- offsets --------------------------------------------------------------------------------------------------------


@given(strategies.offset_records, st.sampled_from([3, 4]))
def test_an_offset_is_written_as_its_key_and_value_are(one: OffsetCommitRecord, version: int) -> None:
    key = encode_offset_key(one.group, one.topic, one.partition)
    value = None
    if one.value is not None:
        value = encode_offset_value(one.value, choose_value_version(one.value, version))
    written = key_size_and_prefix(one.group, one.topic) + encode_partition_and_value(
        one.partition, one.value, version
    )
    assert written == encode_field(key) + encode_field(value) + NO_HEADERS
    group_end, topic_end = find_name_ends(key, 0)
    assert (key[4:group_end].decode(), key[group_end + 2 : topic_end].decode()) == (one.group, one.topic)
    read = decode_offset_record(key, None)
    assert (read.group, read.topic, read.partition) == (one.group, one.topic, one.partition)


# --- the header of a batch ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(13))
def test_each_field_of_a_header_is_where_its_name_says(number: int) -> None:
    names = (
        *("BASE_OFFSET", "LENGTH", "LEADER_EPOCH", "MAGIC", "CHECKSUM", "ATTRIBUTES", "LAST_OFFSET_DELTA"),
        *("BASE_TIMESTAMP", "MAX_TIMESTAMP", "PRODUCER_ID", "PRODUCER_EPOCH", "BASE_SEQUENCE", "COUNT"),
    )
    kinds = HEADER.format.removeprefix(">")
    assert getattr(batch_format, f"{names[number]}_AT") == Struct(">" + kinds[:number]).size
    assert len(kinds) == len(names)
    assert HEADER.size == HEADER_BYTES


@given(
    st.binary(max_size=40),
    st.fixed_dictionaries(
        {
            "base_offset": st.integers(0, 1 << 62),
            "last_offset_delta": st.integers(0, (1 << 31) - 1),
            "leader_epoch": strategies.int32s,
            "attributes": st.integers(0, 0x7F).map(lambda bits: bits & ~7),
            "base_timestamp": strategies.int64s,
            "max_timestamp": strategies.int64s,
            "count": st.integers(0, (1 << 31) - 1),
            "producer_id": strategies.int64s,
            "producer_epoch": int16s,
            "base_sequence": strategies.int32s,
        }
    ),
    st.integers(0, 9),
)
def test_a_header_that_is_written_is_read_in_every_way(body: bytes, fields: dict[str, Any], pos: int) -> None:
    written = encode_batch(body, **fields)
    assert written == with_header(
        body,
        fields["count"],
        base_offset=fields["base_offset"],
        attributes=fields["attributes"],
        delta=fields["last_offset_delta"],
        epoch=fields["leader_epoch"],
        timestamp=fields["base_timestamp"],
        max_timestamp=fields["max_timestamp"],
        producer=(fields["producer_id"], fields["producer_epoch"], fields["base_sequence"]),
    )
    batch = read_checked_batch(b"?" * pos + written, pos)
    assert {name: getattr(batch, name) for name in fields if name != "last_offset_delta"} == {
        name: value for name, value in fields.items() if name != "last_offset_delta"
    }
    assert batch.last_offset == fields["base_offset"] + fields["last_offset_delta"]
    read_alike(batch, written)


def read_alike(batch: Batch, data: bytes) -> None:
    """Every other way to read the header of a batch, whose own bytes are `data`, says the same of it."""
    extent = batch_extent(batch.buffer, batch.position)
    assert extent is not None
    assert (extent.base_offset, extent.next_offset, extent.end) == (
        batch.base_offset,
        batch.next_offset,
        batch.end,
    )
    assert batch_extent(data[:EXTENT_BYTES], 0) == batch_extent(data, 0)
    summary = summarize(batch.buffer, batch.position, 1_000)
    assert (summary.position, summary.size_bytes, summary.end_position) == (
        1_000,
        batch.size_bytes,
        1_000 + batch.size_bytes,
    )
    assert (summary.base_offset, summary.next_offset) == (batch.base_offset, batch.next_offset)
    assert base_offset_of(data) == batch.base_offset
    if batch.magic != MAGIC:
        assert (summary.leader_epoch, summary.max_timestamp, max_timestamp(data)) == (-1, -1, -1)
        return
    assert (summary.leader_epoch, summary.max_timestamp) == (batch.leader_epoch, batch.max_timestamp)
    assert max_timestamp(data) == batch.max_timestamp
    assert next_offset_of(data) == batch.next_offset
    assert record_count(data) == batch.count
    assert has_producer(batch.buffer, batch.position) == (batch.producer_id != -1)
    assert is_transactional(batch.buffer, batch.position) == batch.is_transactional
    assert length_and_checksum(batch.buffer, batch.position) == (batch.size_bytes - 12, batch.checksum)


@given(st.integers(0, 1), st.integers(1, 3))
def test_the_header_of_an_old_message_is_read_in_every_way(magic: int, count: int) -> None:
    data = message_set(magic, pairs=[(b"\0\2\0\1g", None)] * count)
    message = read_unchecked_batch(data)
    read_alike(message, message.data)


@slow_to_draw
@given(st.lists(every_batch, min_size=1, max_size=5))
def test_headers_read_in_bulk_are_those_read_one_by_one(data: list[bytes]) -> None:
    chunk = chunk_of(*data)
    columns = BatchColumns(chunk)
    for index, (start, end) in enumerate(zip(chunk.starts, chunk.ends, strict=True)):
        try:
            batch = read_unchecked_batch(chunk.data[start:end])
        except CorruptBatch:
            continue  # a header of nonsense, which the bulk path reads as it stands
        if batch.last_offset >> 63:
            continue  # beyond what a log can have: 64 bits wrap, as Java's do, and Python's numbers do not
        names = [
            "base_offset",
            "last_offset",
            "leader_epoch",
            "magic",
            "attributes",
            "base_timestamp",
            "max_timestamp",
        ]
        names += ["producer_id", "producer_epoch", *(["count"] if batch.magic == MAGIC else [])]
        for name in names:
            assert int(getattr(columns, name)[index]) == getattr(batch, name), name


@slow_to_draw
@given(every_batch)
def test_records_found_in_bulk_are_those_found_one_by_one(data: bytes) -> None:
    batch = of_version_2(data)
    if batch is None:
        return
    body = decompress_batch_body(batch)
    chunk = chunk_of(data)
    bodies = find_records(chunk, BatchColumns(chunk), 0, ())
    if bodies.slow or not len(bodies.ends):
        return
    found = read_record_fields(bodies.buffer, bodies.starts, bodies.ends)
    plain, damage = outcome(raw_records(batch, body))
    if not found.good.all():
        return  # decoded once more, slowly
    assert damage is None
    begin = int(bodies.ends[-1]) - len(body)
    for index, one in enumerate(plain):
        assert int(bodies.ends[index]) - begin == one.end
        assert batch.base_offset + int(found.offset_delta[index]) == one.offset
        assert batch.base_timestamp + int(found.timestamp_delta[index]) == one.timestamp
        for name, content in (("key", one.key), ("value", one.value)):
            start, size = int(getattr(found, name)[index]), int(getattr(found, f"{name}_size")[index])
            assert (None if size < 0 else bodies.buffer.data[start : start + size]) == content


# --- one owner ------------------------------------------------------------------------------------------------------

OWNERS: dict[str, Callable[[str], bool]] = {
    "storage/format/batch_format.py": lambda text: "qiibI" in text,
    "storage/format/record_body.py": lambda text: "read_zigzag(body" in text,
    "storage/format/offset_record.py": lambda text: "iBhqihqB" in text or "hqihq" in text,
    "storage/format/markers.py": lambda text: '"the key of a control record' in text,
}
"""Something that only the owner of a format has any use for."""


@pytest.mark.parametrize("owner", OWNERS)
def test_no_other_module_knows_the_fields_of_a_format(owner: str) -> None:
    knows = OWNERS[owner]
    found = [
        str(path.relative_to(ROOT))
        for folder in ("storage",)
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "columns" not in path.parts and knows(path.read_text())
    ]
    assert found == [owner]
