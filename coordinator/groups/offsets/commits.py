# SPDX-License-Identifier: Apache-2.0
"""Committing, fetching and deleting a group's offsets."""

from collections.abc import Sequence
from typing import Any, Final

from coordinator.groups.config import GroupConfig
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
from protocol.names import GroupId, Offset
from protocol.rows import Rows
from protocol.wire import repeated
from storage.format.offset_record import PLAIN_ROW, PLAIN_ROW_BYTES, plain_rows
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, OffsetCommits

INVALID_OFFSET: Final = Offset(-1)
NO_RETENTION_TIME: Final = -1
TIMESTAMP_MAX: Final = (1 << 63) - 1

ROWS_FROM: Final = 10
"""From so many partitions of a topic on it is quicker to handle them as rows (`protocol.rows`)."""

SHOWN_ROW: Final = PLAIN_ROW + "4x"
SHOWN_ROW_BYTES: Final = PLAIN_ROW_BYTES + 4
"""As long as an offset is in an answer (OffsetFetch v5 and later), which saves bringing the rows to another length."""

_WITHOUT_ERROR: Final = tuple(OffsetCommitResponsePartition(index, 0) for index in range(1000))
"""By partition: what is answered for an offset that was taken. All commits share them."""


def commit_topic(
    config: GroupConfig,
    group_id: GroupId,
    name: str,
    partition_count: int,
    topic: OffsetCommitRequestTopic,
    retention_time_ms: int,
    now: Instant,
) -> tuple[OffsetCommits, list[OffsetCommitResponsePartition], list[int]]:
    """Decide one topic of a valid commit: what is to be stored, the answers, and the partitions it does not have.

    `name` is the topic's name, which a request of v10 gives as an id. Metadata that is too long refuses its own
    partition alone. An explicit retention time (v2 to v4, milliseconds) makes the offset expire by itself.
    """
    wall = now.wall
    # A sum beyond 63 bits means for ever; Kafka lets it overflow, and the offset is gone at once.
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
    rows = plain_rows(values) if is_plain else None
    return OffsetCommits(group_id, name, values, metadata_bytes, rows), answers, missing


def join_commits(commits: OffsetCommits, more: OffsetCommits) -> None:
    """Add what more rows of the same topic come to, in place of what the commit has of the same partitions."""
    commits.rows = None
    if commits.metadata_bytes:
        for partition in more.values:
            before = commits.values.get(partition)
            if before is not None:
                commits.metadata_bytes -= text_bytes(before.metadata)
    commits.metadata_bytes += more.metadata_bytes
    commits.values.update(more.values)


def commit_rows(
    group_id: GroupId, name: str, partition_count: int, rows: Rows, now: Instant
) -> OffsetCommits | None:
    """What `commit_topic` says is to be stored, of rows of partition, offset and leader epoch, without metadata.

    None where a row is to be answered in a way of its own, or the offset of one is replaced by that of another.
    """
    wall = now.wall
    values: dict[int, OffsetAndMetadata] = {}
    row: tuple[int, Offset, int]
    for row in rows.unpack(PLAIN_ROW):
        index, offset, leader_epoch = row
        if not 0 <= index < partition_count:
            return None
        values[index] = OffsetAndMetadata(offset, leader_epoch, "", wall)
    return None if len(values) < rows.count else OffsetCommits(group_id, name, values, 0, rows)


def utf16_length(text: str) -> int:
    """The length that Java's String.length gives, by which Kafka measures metadata."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fetch_partition(partitions: dict[int, OffsetAndMetadata], index: int) -> OffsetFetchResponsePartitions:
    """The committed offset of one partition as OffsetFetch v8+ shows it; offset -1 where there is none."""
    committed = partitions.get(index)
    if committed is None:
        return OffsetFetchResponsePartitions(index, INVALID_OFFSET, -1, "", 0)
    return OffsetFetchResponsePartitions(
        index, committed.offset, committed.leader_epoch, committed.metadata, 0
    )


def fetch_rows(partitions: dict[int, OffsetAndMetadata], indexes: list[int]) -> Rows | None:
    """The committed offsets of partitions as rows of partition, offset and leader epoch.

    None where one of them has metadata, and where they are so few that they are better shown one by one.
    """
    if len(indexes) < ROWS_FROM:
        return None
    fields: list[Any] = [INVALID_OFFSET] * (3 * len(indexes))
    at = 0
    index: Any  # taken as it is: compiled code would make a number of it, and an object again, twice
    for index in indexes:
        committed = partitions.get(index)
        fields[at] = index
        if committed is not None:
            if committed.metadata:
                return None
            fields[at + 1] = committed.offset
            fields[at + 2] = committed.leader_epoch
        at += 3
    return Rows(repeated(SHOWN_ROW, len(indexes)).pack(*fields), SHOWN_ROW_BYTES)


def fetch_partition_v7(partitions: dict[int, OffsetAndMetadata], index: int) -> OffsetFetchResponsePartition:
    """A committed offset as OffsetFetch up to v7 shows it."""
    committed = partitions.get(index)
    if committed is None:
        return OffsetFetchResponsePartition(index, INVALID_OFFSET, -1, "", 0)
    return OffsetFetchResponsePartition(
        index, committed.offset, committed.leader_epoch, committed.metadata, 0
    )


def delete_offsets(group: Group, offsets: CommittedOffsets, topic: str, partitions: Sequence[int]) -> Outcome:
    """Tombstones for the partitions that have an offset. The answer is a list of ErrorCode, one a partition.

    It is NONE also where there was no offset. A topic that members consume keeps its offsets:
    GROUP_SUBSCRIBED_TO_TOPIC.
    """
    if group.is_subscribed_to(topic):
        return Outcome([ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * len(partitions))
    committed = offsets.of(topic)
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for partition in dict.fromkeys(partitions)
        if partition in committed
    ]
    return Outcome([ErrorCode.NONE] * len(partitions), records, independent=True)
