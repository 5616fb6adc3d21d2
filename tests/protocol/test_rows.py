# SPDX-License-Identifier: Apache-2.0
"""Arrays that are read or written as rows say what they say item by item, in every version."""

from collections.abc import Sequence
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import hot
from protocol.apis import ApiKey
from protocol.codegen.decoder import ROWS_FROM_ITEMS
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, Offset
from protocol.rows import EncodedRows, read_rows_if_uniform

Row = tuple[int, int, int]
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
offsets = st.lists(st.tuples(int32s, int64s, int32s), min_size=1, max_size=14)
row_bytes = st.sampled_from([16, 18, 40])


def rows_of(offsets: Sequence[Row], row_bytes: int) -> EncodedRows:
    """Partition, offset and leader epoch, and behind them what means nothing."""
    return EncodedRows(b"".join(pack(">iqi", *row) + b"?" * (row_bytes - 16) for row in offsets), row_bytes)


def commit(version: int, offsets: Sequence[Row], last: str | None = "") -> bytes:
    """A request whose last partition has this metadata."""
    partitions = [
        hot.OffsetCommitRequestPartition(index, Offset(offset), epoch, -1, "")
        for index, offset, epoch in offsets
    ]
    index, offset, epoch = offsets[-1]
    partitions[-1] = hot.OffsetCommitRequestPartition(index, Offset(offset), epoch, -1, last)
    topic = hot.OffsetCommitRequestTopic("orders", b"i" * 16, partitions)
    request = hot.OffsetCommitRequest(group_id=GroupId("group"), topics=[topic])
    encoded: bytes = find_message_codec(ApiKey.OFFSET_COMMIT, version).encode_request(request)
    return encoded


@pytest.mark.parametrize("version", range(2, 11))
@given(offsets=offsets)
def test_a_commit_without_metadata_comes_as_rows(version: int, offsets: list[Row]) -> None:
    encoded = commit(version, offsets)
    codec = find_message_codec(ApiKey.OFFSET_COMMIT, version)
    (topic,) = codec.decode_request(encoded, 0).topics
    assert (topic.partition_rows is not None) == (len(offsets) >= ROWS_FROM_ITEMS)
    if version < 6:
        offsets = [(index, offset, -1) for index, offset, _ in offsets]
    if topic.partition_rows is not None:
        assert list(topic.partition_rows.unpack("iqi")) == offsets

    seen = [
        (row.partition_index, row.committed_offset, row.committed_leader_epoch) for row in topic.partitions
    ]

    assert seen == offsets
    assert {(row.commit_timestamp, row.committed_metadata) for row in topic.partitions} == {(-1, "")}
    # Once they have been looked at, they are what the list says.
    assert topic.partition_rows is None
    topic.partitions.pop()
    assert len(topic.partitions) == len(offsets) - 1


@pytest.mark.parametrize("version", range(2, 11))
@pytest.mark.parametrize("metadata", ["x", None])
def test_a_commit_with_metadata_does_not(version: int, metadata: str | None) -> None:
    encoded = commit(version, [(index, 7, 8) for index in range(10)], last=metadata)
    (topic,) = find_message_codec(ApiKey.OFFSET_COMMIT, version).decode_request(encoded, 0).topics
    assert topic.partition_rows is None
    assert [row.committed_metadata for row in topic.partitions] == [""] * 9 + [metadata]


def test_tagged_fields_are_no_rows() -> None:
    plain = pack(">iqiBB", 1, 2, 3, 1, 0)
    tagged = pack(">iqiBB", 1, 2, 3, 1, 1)
    assert read_rows_if_uniform(plain * 4, 0, 4, 16, b"\1\0") is not None
    for at in range(4):
        items = [plain] * 4
        items[at] = tagged
        assert read_rows_if_uniform(b"".join(items), 0, 4, 16, b"\1\0") is None


@pytest.mark.parametrize("version", range(2, 11))
@given(offsets=offsets, row_bytes=row_bytes)
def test_a_commit_is_answered_with_the_rows_that_came(
    version: int, offsets: list[Row], row_bytes: int
) -> None:
    def topic(**partitions: Any) -> hot.OffsetCommitResponseTopic:
        return hot.OffsetCommitResponseTopic("orders", b"i" * 16, **partitions)

    codec = find_message_codec(ApiKey.OFFSET_COMMIT, version)
    listed = topic(partitions=[hot.OffsetCommitResponsePartition(index, 0) for index, *_ in offsets])
    in_rows = topic(partition_rows=rows_of(offsets, row_bytes))
    encoded = codec.encode_response(hot.OffsetCommitResponse(topics=[in_rows]))
    assert encoded == codec.encode_response(hot.OffsetCommitResponse(topics=[listed]))
    assert in_rows == listed


@pytest.mark.parametrize("version", range(1, 11))
@given(offsets=offsets, row_bytes=row_bytes)
def test_offsets_are_shown_as_rows(version: int, offsets: list[Row], row_bytes: int) -> None:
    codec = find_message_codec(ApiKey.OFFSET_FETCH, version)
    rows = rows_of(offsets, row_bytes)
    if version < 8:
        old = [
            hot.OffsetFetchResponsePartition(i, Offset(offset), epoch, "", 0) for i, offset, epoch in offsets
        ]
        listed = hot.OffsetFetchResponse(topics=[hot.OffsetFetchResponseTopic("orders", old)])
        in_rows = hot.OffsetFetchResponse(
            topics=[hot.OffsetFetchResponseTopic("orders", partition_rows=rows)]
        )
    else:
        new = [
            hot.OffsetFetchResponsePartitions(i, Offset(offset), epoch, "", 0) for i, offset, epoch in offsets
        ]
        by_item = hot.OffsetFetchResponseTopics("orders", b"i" * 16, new)
        by_rows = hot.OffsetFetchResponseTopics("orders", b"i" * 16, partition_rows=rows)
        listed = hot.OffsetFetchResponse(groups=[hot.OffsetFetchResponseGroup(topics=[by_item])])
        in_rows = hot.OffsetFetchResponse(groups=[hot.OffsetFetchResponseGroup(topics=[by_rows])])
    assert codec.encode_response(in_rows) == codec.encode_response(listed)
    assert in_rows == listed


@given(offsets=offsets, row_bytes=row_bytes, data=st.data())
def test_a_part_of_rows_is_rows(offsets: list[Row], row_bytes: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(offsets) - 1))
    stop = data.draw(st.integers(start + 1, len(offsets)))
    part = rows_of(offsets, row_bytes).slice_rows(start, stop)
    assert part.count == stop - start
    assert list(part.unpack("iqi")) == offsets[start:stop]
