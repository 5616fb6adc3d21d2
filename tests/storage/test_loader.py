# SPDX-License-Identifier: Apache-2.0
"""The fast way of reading records and the ordinary one say the same."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from protocol.newtypes import GroupId, LeaderEpoch, Offset
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import BatchBuilder, iter_batches, iter_records, read_checked_batch
from storage.format.batch_format import CONTROL, HEADER_BYTES
from storage.format.record_decoder import RecordDecoder
from storage.format.records import (
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    decode_key_and_value,
    encode_record_key,
    encode_record_value,
)
from tests.storage import strategies
from tests.storage.headers import with_header
from tests.storage.test_batch import NOW, built


def ordinary(data: bytes) -> list[Record]:
    """The records of a batch, the slow way."""
    return [decode_key_and_value(key, value) for _, _, key, value in iter_records(data)]


@given(st.lists(strategies.records, min_size=1, max_size=20), st.sampled_from([3, 4]))
def test_records_of_every_kind(records: list[Record], version: int) -> None:
    data = built(records, version=version)
    assert RecordDecoder().decode_batch(read_checked_batch(data)) == ordinary(data)


plain = st.builds(
    OffsetCommitRecord,
    group=strategies.few_names,
    topic=strategies.few_names,
    partition=strategies.int32s,
    value=st.none()
    | st.builds(
        OffsetAndMetadata,
        offset=strategies.int64s,
        leader_epoch=strategies.int32s,
        metadata=st.sampled_from(["", "", "m"]),
        commit_timestamp=strategies.int64s,
    ),
)


@given(st.lists(st.lists(plain, min_size=1, max_size=90), min_size=1, max_size=4))
def test_one_loader_for_many_batches(batches: list[list[OffsetCommitRecord]]) -> None:
    loader = RecordDecoder()
    for records in batches:
        assert loader.decode_batch(read_checked_batch(built(records))) == records


def test_many_records_with_long_deltas_sizes_and_headers() -> None:
    records = strategies.commit(1, 9_000, group="g" * 300)
    assert RecordDecoder().decode_batch(read_checked_batch(built(records))) == records
    builder = DefaultRecordBatchBuilder(2, 1, False, -1, -1, -1, 1 << 24)
    for offset, record in enumerate(records[:500]):
        headers = [("h", b"v" * (offset % 90))] if offset % 2 else []
        builder.append(
            offset,
            NOW + offset * 100_000,
            encode_record_key(record),
            encode_record_value(record),
            headers,
        )
    batch = read_checked_batch(bytes(builder.build()))
    assert batch.compression == 1
    assert RecordDecoder().decode_batch(batch) == records[:500]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["g", "h"]), st.sampled_from(["t", "tt"]), st.integers(0, 400), st.integers(1, 90)
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_offsets_in_a_row_come_together_and_lose_nothing(
    rows: list[tuple[str, str, int, int]], odd: bool
) -> None:
    records: list[Record] = []
    for group, topic, first, count in rows:
        for n in range(first, first + count):
            metadata = "m" if odd and n % 37 == 0 else ""
            records.append(
                OffsetCommitRecord(
                    GroupId(group), topic, n, OffsetAndMetadata(Offset(n * n), n, metadata, NOW)
                )
            )
    if not records:
        return
    batch = read_checked_batch(built(records))
    loader = RecordDecoder()
    assert loader.decode_batch(batch) == records
    runs = loader.decode_with_commits_merged_by_topic(batch)
    assert odd or len(runs) <= 3 * len(
        rows
    )  # a longer delta, or a partition that comes twice, begins another one
    assert sum(len(run.values) if isinstance(run, TopicOffsetCommits) else 1 for run in runs) == len(records)


def test_a_varint_that_does_not_end_with_its_record_takes_nobody_along() -> None:
    records = strategies.commit(1, 200)
    body = bytearray(built(records)[HEADER_BYTES:])
    for number in (5, 150):
        delta = (
            body.index(encode_record_key(records[number])) - 2
        )  # its last byte stands before the key's size
        body[delta] |= 0x80
        damaged = with_header(bytes(body), 200)
        with pytest.raises((CorruptBatch, CorruptRecord)):
            RecordDecoder().decode_batch(read_checked_batch(damaged))
        body[delta] &= 0x7F


def test_names_are_shared_between_records() -> None:
    loader = RecordDecoder()
    one, two = (loader.decode_batch(read_checked_batch(built(strategies.commit(n, 2)))) for n in (1, 2))
    records = [record for record in one + two if isinstance(record, OffsetCommitRecord)]
    assert len(records) == 4
    assert len({id(record.group) for record in records}) == 1
    assert len({id(record.topic) for record in records}) == 1


def test_the_loader_forgets_names_when_it_knows_too_many() -> None:
    records = [
        OffsetCommitRecord(
            GroupId(f"group{n % 40}"), f"topic{n % 30}", n, OffsetAndMetadata(Offset(n), -1, "", NOW)
        )
        for n in range(500)
    ]
    assert RecordDecoder(names_max=7).decode_batch(read_checked_batch(built(records))) == records


def test_keys_that_only_look_like_an_offsets_take_the_ordinary_way() -> None:
    value = encode_record_value(
        OffsetCommitRecord(GroupId(""), "", 0, OffsetAndMetadata(Offset(5), -1, "", NOW))
    )
    good = encode_record_key(OffsetCommitRecord(GroupId("group"), "topic", 3, None))
    keys = [
        good + b"more!",  # Kafka ignores what follows the partition
        b"\x00\x00" + good[2:],
        b"\x00\x05" + good[2:],
        good[:4] + b"gro\xffp" + good[9:],
    ]
    for key in keys:
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
        builder.append(0, NOW, key, value, [])
        data = bytes(builder.build())
        assert (
            RecordDecoder().decode_batch(read_checked_batch(data))
            == ordinary(data)
            == [decode_key_and_value(key, value)]
        )


def test_a_control_batch_has_no_records_of_groups() -> None:
    body = built(strategies.commit(1, 2))[HEADER_BYTES:]
    assert RecordDecoder().decode_batch(read_checked_batch(with_header(body, 2, attributes=CONTROL))) == []


def test_a_record_that_makes_no_sense_is_reported_with_its_batch() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    builder.append(0, NOW, encode_record_key(OffsetCommitRecord(GroupId("g"), "t", 0, None)), b"\x00\x09", [])
    with pytest.raises(CorruptRecord, match="batch of offsets 0 to 0: offset commit value version 9 "):
        RecordDecoder().decode_batch(read_checked_batch(bytes(builder.build())))


@given(st.data())
def test_damage_behind_a_right_checksum_is_found_or_read_but_nothing_else(data: st.DataObject) -> None:
    body = bytearray(built(strategies.commit(1, 3))[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3))
    damaged = with_header(bytes(body[: len(body) - cut]), 3)
    expected: list[Record] | None = None
    with suppress(CorruptBatch, CorruptRecord):
        expected = ordinary(damaged)
    try:
        found = RecordDecoder().decode_batch(read_checked_batch(damaged))
    except (CorruptBatch, CorruptRecord):
        assert expected is None
    else:
        # The fast way does not read deltas and headers, and so cannot find all the damage in them.
        assert expected is None or found == expected


def test_batches_loaded_one_after_the_other() -> None:
    builder = BatchBuilder(2_000)
    records = [record for n in range(100) for record in strategies.commit(n, 2)]
    for n in range(0, 200, 2):
        builder.append_in_one_batch(records[n : n + 2])
    loader = RecordDecoder()
    data = b"".join(builder.build(Offset(0), LeaderEpoch(0), NOW))
    assert [record for batch in iter_batches(data) for record in loader.decode_batch(batch)] == records
