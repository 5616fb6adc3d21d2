# SPDX-License-Identifier: Apache-2.0
"""Many offsets are committed and shown as rows, with the outcome that they have one by one."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.config import GroupCoordinatorConfig
from coordinator.groups.offsets.commits import (
    NO_RETENTION_TIME,
    ROWS_FROM,
    fetch_partition,
    fetch_rows,
    prepare_rows_commit,
    prepare_topic_commit,
)
from coordinator.groups.outcome import Instant
from protocol.hot import OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetFetchResponseTopics
from protocol.newtypes import GroupId, LeaderEpoch, Offset
from protocol.rows import EncodedRows
from storage.format.batch import BatchBuilder
from storage.format.offset_record import PLAIN_ROW, OffsetAndMetadata, TopicOffsetCommits
from tests.storage.headers import NOW

GROUP = GroupId("group")
PARTITIONS = 20
offsets = st.lists(
    st.tuples(
        st.integers(-1, PARTITIONS) | st.integers(0, PARTITIONS - 1),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.integers(-1, 9),
    ),
    min_size=1,
    max_size=PARTITIONS,
    unique_by=lambda row: row[0],
)
with_repeats = st.tuples(offsets, st.booleans()).map(lambda drawn: drawn[0] + drawn[0][:1] * drawn[1])


def topic_of(rows: list[tuple[int, int, int]]) -> OffsetCommitRequestTopic:
    partitions = [OffsetCommitRequestPartition(index, Offset(offset), epoch) for index, offset, epoch in rows]
    return OffsetCommitRequestTopic("orders", partitions=partitions)


def came_as(rows: list[tuple[int, int, int]]) -> EncodedRows:
    """As a request has them: with an empty string and no tagged fields."""
    ends = b"\1\0"
    packed = [
        index.to_bytes(4, "big", signed=True)
        + offset.to_bytes(8, "big", signed=True)
        + epoch.to_bytes(4, "big", signed=True)
        for index, offset, epoch in rows
    ]
    return EncodedRows(b"".join(row + ends for row in packed), 18)


def written(commits: TopicOffsetCommits) -> list[bytes]:
    builder = BatchBuilder()
    builder.append_offsets([commits])
    return builder.build(Offset(0), LeaderEpoch(0), NOW)


@given(with_repeats)
def test_rows_are_stored_as_one_by_one_or_not_at_all(rows: list[tuple[int, int, int]]) -> None:
    now = Instant(0, NOW)
    commits, answers, missing = prepare_topic_commit(
        GroupCoordinatorConfig(), GROUP, "orders", PARTITIONS, topic_of(rows), NO_RETENTION_TIME, now
    )
    as_rows = prepare_rows_commit(GROUP, "orders", PARTITIONS, came_as(rows), now)
    if missing or len(commits.values) < len(rows):
        assert as_rows is None
        return
    assert as_rows == commits
    assert written(as_rows) == written(TopicOffsetCommits(GROUP, "orders", commits.values))
    assert written(commits) == written(as_rows)
    assert [(answer.partition_index, answer.error_code) for answer in answers] == [
        (row[0], 0) for row in rows
    ]


def test_what_is_left_out_again_is_not_written() -> None:
    rows = [(index, 7, -1) for index in range(PARTITIONS)]
    commits = prepare_rows_commit(GROUP, "orders", PARTITIONS, came_as(rows), Instant(0, NOW))
    assert commits is not None
    left = prepare_rows_commit(GROUP, "orders", PARTITIONS, came_as(rows[1:]), Instant(0, NOW))
    assert left is not None
    assert commits.pop_partition(0).offset == 7
    assert (commits, written(commits)) == (left, written(left))


committed = st.builds(
    OffsetAndMetadata,
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-1, 9),
    st.sampled_from([""] * 9 + ["m"]),
    st.just(NOW),
)


@given(
    st.dictionaries(st.integers(0, 30), committed, max_size=30),
    st.lists(st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(0, 30), max_size=40),
)
def test_offsets_are_shown_in_rows_as_one_by_one(
    partitions: dict[int, OffsetAndMetadata], indexes: list[int]
) -> None:
    one_by_one = [fetch_partition(partitions, index) for index in indexes]
    rows = fetch_rows(partitions, indexes)
    assert (rows is None) == (len(indexes) < ROWS_FROM or any(row.metadata for row in one_by_one))
    if rows is not None:
        assert list(rows.unpack(PLAIN_ROW))[: len(indexes)] == [
            (row.partition_index, row.committed_offset, row.committed_leader_epoch) for row in one_by_one
        ]
        assert OffsetFetchResponseTopics("t", partition_rows=rows).partitions == one_by_one
