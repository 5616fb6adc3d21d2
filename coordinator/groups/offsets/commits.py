# SPDX-License-Identifier: Apache-2.0
"""Prepares commits and deletions of a group's offsets, and fetches offsets; changes no group."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from coordinator.groups.config import GroupCoordinatorConfig
from coordinator.groups.group import Group
from coordinator.groups.group_totals import text_bytes
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.groups.outcome import Instant, Outcome
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
)
from protocol.hot.offset_fetch import OffsetFetchResponsePartition, OffsetFetchResponsePartitions
from protocol.newtypes import GroupId, Offset
from protocol.rows import EncodedRows
from protocol.wire import array_struct
from storage.format.offset_record import PLAIN_ROW, PLAIN_ROW_BYTES, pack_plain_offsets_into_rows
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, TopicOffsetCommits

INVALID_OFFSET: Final = Offset(-1)
NO_RETENTION_TIME: Final = -1
TIMESTAMP_MAX: Final = (1 << 63) - 1

ROWS_FROM: Final = 10
"""The number of partitions of a topic from which on rows are quicker (`protocol.rows`)."""

SHOWN_ROW: Final = PLAIN_ROW + "4x"
SHOWN_ROW_BYTES: Final = PLAIN_ROW_BYTES + 4
"""The bytes of an offset in a response (OffsetFetch v5 and later), so that rows need no other length."""

_WITHOUT_ERROR: Final = tuple(OffsetCommitResponsePartition(index, 0) for index in range(1000))
"""The response for an accepted offset, by partition, which all commits share."""


def prepare_topic_commit(
    config: GroupCoordinatorConfig,
    group_id: GroupId,
    name: str,
    partition_count: int,
    topic: OffsetCommitRequestTopic,
    retention_time_ms: int,
    now: Instant,
) -> tuple[TopicOffsetCommits, list[OffsetCommitResponsePartition], list[int]]:
    """Return, for one topic of a valid commit, the offsets to store, the responses, and the unknown partitions.

    `name` is the topic's name, which a request of v10 gives as an id. Metadata that is too long refuses only its
    partition. An explicit retention time (v2 to v4, milliseconds) gives the offset its own time of expiry.
    """
    wall = now.wall
    # A sum beyond 63 bits means for ever; in Kafka it overflows, and the offset expires at once.
    expire_timestamp = (
        None if retention_time_ms == NO_RETENTION_TIME else min(wall + retention_time_ms, TIMESTAMP_MAX)
    )
    limit = config.offset_metadata_max_bytes
    values: dict[int, OffsetAndMetadata] = {}
    metadata_bytes = 0
    answers = []
    missing = []
    for row in topic.partitions:
        metadata = row.committed_metadata
        index = row.partition_index
        if not 0 <= index < partition_count:
            missing.append(index)
            continue
        if metadata and len(metadata) * 2 > limit and utf16_length(metadata) > limit:
            answers.append(OffsetCommitResponsePartition(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            continue
        if metadata:
            metadata_bytes += text_bytes(metadata)
        if metadata_bytes and index in values:
            metadata_bytes -= text_bytes(values[index].metadata)
        values[index] = OffsetAndMetadata(
            row.committed_offset,
            row.committed_leader_epoch,
            metadata or "",
            wall,
            expire_timestamp,
        )
        answers.append(
            _WITHOUT_ERROR[index] if index < len(_WITHOUT_ERROR) else OffsetCommitResponsePartition(index, 0)
        )
    is_plain = not metadata_bytes and expire_timestamp is None and len(values) >= ROWS_FROM
    rows = pack_plain_offsets_into_rows(values) if is_plain else None
    return TopicOffsetCommits(group_id, name, values, metadata_bytes, rows), answers, missing


def add_later_commits(commits: TopicOffsetCommits, more: TopicOffsetCommits) -> None:
    """Add the later offsets in `more`, of the same topic, to `commits`; they replace those of the same partitions."""
    commits.rows = None
    if commits.metadata_bytes:
        for partition in more.values:
            before = commits.values.get(partition)
            if before is not None:
                commits.metadata_bytes -= text_bytes(before.metadata)
    commits.metadata_bytes += more.metadata_bytes
    commits.values.update(more.values)


def iterate_offset_moves(
    offsets: CommittedOffsets, commits: Sequence[TopicOffsetCommits]
) -> Iterator[tuple[str, int, tuple[int | None, int | None]]]:
    """Yield (topic, partition, (offset before, offset after)) of a commit that is not stored yet."""
    for each in commits:
        known = offsets.get_topic_offsets(each.topic)
        for partition, value in each.values.items():
            before = known.get(partition)
            yield each.topic, partition, (None if before is None else before.offset, value.offset)


def prepare_rows_commit(
    group_id: GroupId, name: str, partition_count: int, rows: EncodedRows, now: Instant
) -> TopicOffsetCommits | None:
    """Return the offsets to store for one topic's rows of partition, offset and leader epoch, without metadata.

    Returns None if a partition does not exist, or occurs twice.
    """
    wall = now.wall
    values: dict[int, OffsetAndMetadata] = {}
    row: tuple[int, Offset, int]
    for row in rows.unpack(PLAIN_ROW):
        index, offset, leader_epoch = row
        if not 0 <= index < partition_count:
            return None
        values[index] = OffsetAndMetadata(offset, leader_epoch, "", wall)
    return None if len(values) < rows.count else TopicOffsetCommits(group_id, name, values, 0, rows)


def utf16_length(text: str) -> int:
    """Return the length of a text as Java's String.length counts it, by which Kafka measures metadata."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fetch_partition(partitions: dict[int, OffsetAndMetadata], index: int) -> OffsetFetchResponsePartitions:
    """Return a partition's committed offset as in OffsetFetch v8 and later; offset -1 if it has none."""
    committed = partitions.get(index)
    if committed is None:
        return OffsetFetchResponsePartitions(index, INVALID_OFFSET, -1, "", 0)
    return OffsetFetchResponsePartitions(
        index, committed.offset, committed.leader_epoch, committed.metadata, 0
    )


def fetch_rows(partitions: dict[int, OffsetAndMetadata], indexes: list[int]) -> EncodedRows | None:
    """Return the committed offsets of partitions as rows of partition, offset and leader epoch.

    Returns None if one of them has metadata, or they are fewer than ROWS_FROM.
    """
    if len(indexes) < ROWS_FROM:
        return None
    fields: list[Any] = [INVALID_OFFSET] * (3 * len(indexes))
    at = 0
    index: Any  # else compiled code would make a number of the object, and an object again, twice
    for index in indexes:
        committed = partitions.get(index)
        fields[at] = index
        if committed is not None:
            if committed.metadata:
                return None
            fields[at + 1] = committed.offset
            fields[at + 2] = committed.leader_epoch
        at += 3
    return EncodedRows(array_struct(SHOWN_ROW, len(indexes)).pack(*fields), SHOWN_ROW_BYTES)


def fetch_partition_v7(partitions: dict[int, OffsetAndMetadata], index: int) -> OffsetFetchResponsePartition:
    """Return a partition's committed offset as in OffsetFetch up to v7."""
    committed = partitions.get(index)
    if committed is None:
        return OffsetFetchResponsePartition(index, INVALID_OFFSET, -1, "", 0)
    return OffsetFetchResponsePartition(
        index, committed.offset, committed.leader_epoch, committed.metadata, 0
    )


def plan_offset_deletion(
    group: Group, offsets: CommittedOffsets, topic: str, partitions: Sequence[int]
) -> Outcome:
    """Return an outcome with tombstones of these partitions' offsets; its answer has an ErrorCode for each one.

    The code is NONE also for a partition without an offset. A topic that members consume keeps its offsets:
    GROUP_SUBSCRIBED_TO_TOPIC.
    """
    if group.is_subscribed_to(topic):
        return Outcome([ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * len(partitions))
    committed = offsets.get_topic_offsets(topic)
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for partition in dict.fromkeys(partitions)
        if partition in committed
    ]
    return Outcome([ErrorCode.NONE] * len(partitions), records, independent=True)
