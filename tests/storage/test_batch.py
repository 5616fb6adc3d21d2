# SPDX-License-Identifier: Apache-2.0
"""Batches: built, read back, compared with kafka-python's, and refused when they are damaged."""

import gzip
from collections.abc import Sequence
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from protocol.newtypes import GroupId, LeaderEpoch, Offset
from storage.errors import CorruptBatch, IncompleteBatch, RecordTooLarge
from storage.format.batch import (
    Batch,
    BatchBuilder,
    iter_batches,
    iter_records,
    read_checked_batch,
    read_unchecked_batch,
)
from storage.format.batch_format import HEADER_BYTES, LOG_APPEND_TIME
from storage.format.compression import compress, decompress
from storage.format.offset_record import pack_plain_offsets_into_rows
from storage.format.records import (
    GroupMetadataRecord,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    encode_record_key,
    encode_record_value,
)
from storage.format.varints import encode_signed_varint, read_zigzag
from tests.storage import strategies
from tests.storage.headers import with_header

NOW = 1_700_000_000_000


def built(records: Sequence[Record], *, base_offset: int = 0, version: int = 3) -> bytes:
    """One batch of these records."""
    builder = BatchBuilder(1 << 26, version)
    builder.append_in_one_batch(records)
    (batch,) = builder.build(Offset(base_offset), LeaderEpoch(5), NOW)
    return batch


def kafka_python_batch(records: Sequence[Record], version: int) -> bytes:
    """The same batch as kafka-python builds it."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 26)
    for offset, record in enumerate(records):
        value = encode_record_value(record, version)
        assert builder.append(offset, NOW, encode_record_key(record), value, []) is not None
    return bytes(builder.build())


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varints_read_back(number: int) -> None:
    data = encode_signed_varint(number)
    assert read_zigzag(b"?" + data + b"?", 1) == (number, 1 + len(data))


@given(st.lists(strategies.records, min_size=1, max_size=20), st.sampled_from([3, 4]))
def test_a_batch_is_byte_for_byte_what_kafka_python_builds(records: list[Record], version: int) -> None:
    ours, theirs = built(records, version=version), kafka_python_batch(records, version)
    # All but the leader epoch, which kafka-python leaves at 0 for the broker to fill in; it is not in
    # the checksum.
    assert ours[:12] + ours[16:] == theirs[:12] + theirs[16:]


@given(st.lists(strategies.records, min_size=1, max_size=20))
def test_kafka_python_reads_a_batch(records: list[Record]) -> None:
    theirs = MemoryRecords(built(records, base_offset=100)).next_batch()
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (100 + n, NOW, encode_record_key(record), encode_record_value(record))
        for n, record in enumerate(records)
    ]


@given(
    st.lists(st.lists(strategies.records, max_size=6), max_size=12),
    st.integers(0, 1 << 40),
    st.sampled_from([3, 4]),
)
def test_records_come_back_in_order_with_offsets_without_gaps(
    appends: list[list[Record]], base_offset: int, version: int
) -> None:
    builder = BatchBuilder(1 << 20, version)
    for records in appends:
        builder.append_in_one_batch(records)
    expected = [record for records in appends for record in records]
    batches = [read_checked_batch(batch) for batch in builder.build(Offset(base_offset), LeaderEpoch(9), NOW)]
    assert builder.count == len(expected) == sum(batch.count for batch in batches)
    assert [item for batch in batches for item in iter_records(batch)] == [
        (base_offset + n, NOW, encode_record_key(record), encode_record_value(record, version))
        for n, record in enumerate(expected)
    ]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1_200, 4_000))
def test_what_one_append_brings_stays_in_one_batch(sizes: list[int], max_bytes: int) -> None:
    builder = BatchBuilder(max_bytes)
    refused = 0
    for label, size in enumerate(sizes):
        before = builder.build(Offset(0), LeaderEpoch(0), NOW)
        try:
            builder.append_in_one_batch(strategies.commit(label, size))
        except RecordTooLarge:
            refused += 1
            assert builder.build(Offset(0), LeaderEpoch(0), NOW) == before
    batches = builder.build(Offset(0), LeaderEpoch(0), NOW)
    assert all(len(batch) <= max_bytes for batch in batches)
    where: dict[bytes, set[int]] = {}
    for number, batch in enumerate(batches):
        for _, _, _, value in iter_records(batch):
            assert value is not None
            where.setdefault(value[2:10], set()).add(number)
    assert all(len(numbers) == 1 for numbers in where.values())
    assert len(where) == len(sizes) - refused


def test_many_records_need_longer_offset_deltas() -> None:
    records = strategies.commit(1, 9_000)
    batch = built(records)
    assert [offset for offset, *_ in iter_records(batch)] == list(range(9_000))
    assert batch[16:] == kafka_python_batch(records, 3)[16:]


offsets_of_a_topic = st.builds(
    TopicOffsetCommits,
    group=strategies.names,
    topic=strategies.few_names,
    values=st.dictionaries(strategies.int32s, strategies.offsets, max_size=90),
)


def plain_offsets(
    group: str, topic: str, offsets: dict[int, tuple[int, int]], time_ms: int
) -> TopicOffsetCommits:
    """As a commit of a usual client gives them: no metadata, no expiry, one time."""
    values = {
        partition: OffsetAndMetadata(Offset(offset), epoch, "", time_ms)
        for partition, (offset, epoch) in offsets.items()
    }
    return TopicOffsetCommits(
        GroupId(group), topic, values, rows=pack_plain_offsets_into_rows(values) if values else None
    )


plain_offsets_of_a_topic = st.builds(
    plain_offsets,
    strategies.names,
    strategies.few_names,
    st.dictionaries(strategies.int32s, st.tuples(strategies.int64s, strategies.int32s), max_size=90),
    strategies.int64s,
)


@given(
    st.lists(st.lists(st.one_of(offsets_of_a_topic, plain_offsets_of_a_topic), max_size=3), max_size=4),
    st.sampled_from([3, 4]),
)
def test_offsets_by_topic_give_the_same_bytes_as_records_one_by_one(
    appends: list[list[TopicOffsetCommits]], version: int
) -> None:
    one, other = BatchBuilder(1 << 22, version), BatchBuilder(1 << 22, version)
    for commits in appends:
        one.append_offsets(commits)
        other.append_in_one_batch(
            [
                OffsetCommitRecord(commit.group, commit.topic, partition, value)
                for commit in commits
                for partition, value in commit.values.items()
            ]
        )
    assert one.count == other.count
    assert one.build(Offset(7), LeaderEpoch(1), NOW) == other.build(Offset(7), LeaderEpoch(1), NOW)


@pytest.mark.parametrize("before", [0, 1, 30, 61, 64, 8_170])
@pytest.mark.parametrize("count", [1, 4, 32, 33, 100, 9_000])
def test_many_plain_offsets_give_the_same_bytes_wherever_they_begin(before: int, count: int) -> None:
    """Offset deltas have one byte, two from 64 on, and three from 8,192 on."""
    one, other = BatchBuilder(1 << 22), BatchBuilder(1 << 22)
    first = plain_offsets("g", "t", {index: (index, -1) for index in range(before)}, NOW)
    then = plain_offsets("g", "t2", {index: (1 << 40, index) for index in range(count)}, NOW + 1)
    for commit in (first, then):
        one.append_offsets([commit])
        other.append_in_one_batch(
            [OffsetCommitRecord(commit.group, commit.topic, *offset) for offset in commit.values.items()]
        )
    assert one.build(Offset(7), LeaderEpoch(1), NOW) == other.build(Offset(7), LeaderEpoch(1), NOW)


def test_offsets_by_topic_that_do_not_fit_change_nothing() -> None:
    builder = BatchBuilder(2_000)
    value = OffsetAndMetadata(Offset(1), -1, "", NOW)
    few = TopicOffsetCommits(GroupId("g"), "t", dict.fromkeys(range(10), value))
    builder.append_offsets([few])
    before = builder.build(Offset(0), LeaderEpoch(0), NOW)
    many = TopicOffsetCommits(GroupId("g"), "t", dict.fromkeys(range(100), value))
    for too_large in ([few, many], [TopicOffsetCommits(GroupId("x" * 32_768), "t", {0: value})]):
        with pytest.raises(RecordTooLarge):
            builder.append_offsets(too_large)
        assert builder.build(Offset(0), LeaderEpoch(0), NOW) == before
    for _ in range(9):
        builder.append_offsets([few, few])
    assert [read_unchecked_batch(one).count for one in builder.build(Offset(0), LeaderEpoch(0), NOW)] == [
        30,
        40,
        40,
        40,
        40,
    ]


def test_building_again_elsewhere_changes_nothing_else() -> None:
    builder = BatchBuilder()
    builder.append_in_one_batch(strategies.commit(1, 3))
    (first,), (again,) = (
        builder.build(Offset(7), LeaderEpoch(1), NOW),
        builder.build(Offset(900), LeaderEpoch(1), NOW),
    )
    assert again == (900).to_bytes(8, "big") + first[8:]


def test_nothing_appended_builds_nothing() -> None:
    builder = BatchBuilder()
    builder.append_in_one_batch([])
    assert builder.build(Offset(0), LeaderEpoch(0), NOW) == []
    assert builder.count == 0


def test_a_refused_record_leaves_the_builder_as_it_was() -> None:
    builder = BatchBuilder()
    builder.append_in_one_batch(strategies.commit(1, 2))
    with pytest.raises(RecordTooLarge, match="group has 40000 bytes"):
        builder.append_in_one_batch(
            [*strategies.commit(2, 2), GroupMetadataRecord(GroupId("x" * 40_000), None)]
        )
    with pytest.raises(RecordTooLarge, match="at most 1048588"):
        builder.append_in_one_batch(strategies.commit(3, 40_000))
    builder.append_in_one_batch(strategies.commit(4, 1))
    (batch,) = builder.build(Offset(0), LeaderEpoch(0), NOW)
    assert batch == built([*strategies.commit(1, 2), *strategies.commit(4, 1)])[:12] + batch[12:]
    assert len(list(iter_records(batch))) == 3


def test_the_header_says_what_a_coordinator_writes() -> None:
    batch = read_unchecked_batch(built(strategies.commit(1, 3), base_offset=40))
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.count) == (40, 42, 43, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.attributes, batch.magic, batch.leader_epoch) == (0, 2, 5)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW, NOW)
    assert not batch.is_control
    assert not batch.is_transactional


# ------------------------------------------------------------------ reading


def test_batches_are_found_one_after_the_other() -> None:
    one, two = built(strategies.commit(1, 2)), built(strategies.commit(2, 3), base_offset=2)
    found = list(iter_batches(b"junk" + one + two, 4, check=True))
    assert [(batch.position, batch.end, batch.base_offset) for batch in found] == [
        (4, 4 + len(one), 0),
        (4 + len(one), 4 + len(one) + len(two), 2),
    ]
    assert [batch.data for batch in found] == [one, two]


def test_a_batch_cut_anywhere_is_incomplete() -> None:
    whole = built(strategies.commit(1, 2))
    for cut in range(len(whole)):
        with pytest.raises(IncompleteBatch):
            read_unchecked_batch(whole[:cut])


def test_a_flipped_byte_anywhere_is_found() -> None:
    whole = built(strategies.commit(1, 2))
    for position in range(len(whole)):
        if position in range(8) or position in range(12, 16):
            continue  # base offset and leader epoch are set after the checksum, as by a broker
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        with pytest.raises(CorruptBatch):
            read_checked_batch(bytes(damaged))


@given(st.binary(max_size=200), st.integers(0, 5), st.integers(0, 0xFF))
def test_garbage_for_records_is_refused_or_read_but_nothing_else(
    body: bytes, count: int, attributes: int
) -> None:
    with suppress(CorruptBatch):
        list(iter_records(with_header(body, max(count, 1), attributes=attributes)))


@given(st.data())
def test_damage_behind_a_right_checksum_never_reads_beyond_a_record(data: st.DataObject) -> None:
    body = bytearray(built(strategies.commit(1, 3))[HEADER_BYTES:])
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptBatch):
        for _, _, key, value in iter_records(with_header(bytes(body), 3)):
            assert len(key or b"") + len(value or b"") <= len(body)


def test_fewer_or_more_records_than_the_header_says_is_damage() -> None:
    body = built(strategies.commit(1, 3))[HEADER_BYTES:]
    for count in (2, 4):
        with pytest.raises(CorruptBatch):
            list(iter_records(with_header(body, count)))


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (1, gzip.compress),
        (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
        (3, lambda data: bytes(cramjam.lz4.compress(data))),
        (4, lambda data: bytes(cramjam.zstd.compress(data))),
    ],
)
def test_compressed_batches_are_read(codec: int, compress: object) -> None:
    assert callable(compress)
    plain = built(strategies.commit(1, 300))
    packed = with_header(compress(plain[HEADER_BYTES:]), 300, attributes=codec)
    assert list(iter_records(packed)) == list(iter_records(plain))
    with pytest.raises(CorruptBatch):
        list(iter_records(with_header(b"\x01nonsense", 1, attributes=codec)))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_would_fill_the_memory_is_not_decompressed(codec: int) -> None:
    body = compress(codec, bytes(1_000_000))
    assert decompress(codec, body, 1_000_000) == bytes(1_000_000)
    with pytest.raises(ValueError, match=r"decompress|at most"):
        decompress(codec, body, 999_999)


def test_snappy_in_the_framing_of_snappy_java_is_read() -> None:
    plain = built(strategies.commit(1, 300))
    body = plain[HEADER_BYTES:]
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (body[:1000], body[1000:])]
    framed = b"\x82SNAPPY\x00" + bytes((0, 0, 0, 1, 0, 0, 0, 1))
    framed += b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    assert list(iter_records(with_header(framed, 300, attributes=2))) == list(iter_records(plain))
    for cut in (17, 19, len(framed) - 1):
        with pytest.raises(CorruptBatch):
            list(iter_records(with_header(framed[:cut], 300, attributes=2)))


def test_a_codec_that_is_not_known_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="compression 7"):
        list(iter_records(with_header(b"", 1, attributes=7)))


def test_timestamps_are_those_of_the_append_where_the_topic_says_so() -> None:
    body = built(strategies.commit(1, 2))[HEADER_BYTES:]
    records = iter_records(with_header(body, 2, attributes=LOG_APPEND_TIME, max_timestamp=NOW + 55))
    assert [timestamp for _, timestamp, _, _ in records] == [NOW + 55] * 2


def test_headers_and_timestamps_of_other_writers_are_read() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, True, 77, 3, 0, 1 << 20)
    for offset in range(100):
        builder.append(offset, NOW + offset * 1000, b"k%d" % offset, None, [("h", b"v" * offset)])
    data = bytes(builder.build())
    batch: Batch = read_checked_batch(data)
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 0)
    assert list(iter_records(batch)) == [
        (offset, NOW + offset * 1000, b"k%d" % offset, None) for offset in range(100)
    ]


def test_keys_can_be_null_and_values_empty() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    builder.append(0, NOW, None, b"", [])
    assert list(iter_records(bytes(builder.build()))) == [(0, NOW, None, b"")]


def test_an_offset_record_of_each_shape_takes_the_same_path_in_and_out() -> None:
    record = OffsetCommitRecord(GroupId("g"), "t", 1, None)
    ((_, _, key, value),) = iter_records(built([record]))
    assert (key, value) == (encode_record_key(record), None)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches_that_we_write_are_smaller_and_read_the_same(codec: int) -> None:
    records = [
        OffsetCommitRecord(GroupId("group"), "topic", p, OffsetAndMetadata(Offset(p), -1, "x" * 50, 7))
        for p in range(40)
    ]
    plain, small = BatchBuilder(), BatchBuilder(compression=codec)
    for builder in (plain, small):
        builder.append_in_one_batch(records)
    (as_it_is,), (compressed,) = (
        plain.build(Offset(5), LeaderEpoch(0), 9),
        small.build(Offset(5), LeaderEpoch(0), 9),
    )
    assert len(compressed) < len(as_it_is) / 2
    assert read_checked_batch(compressed).compression == codec
    assert list(iter_records(read_checked_batch(compressed))) == list(
        iter_records(read_checked_batch(as_it_is))
    )
