# SPDX-License-Identifier: Apache-2.0
"""Encodes records into RecordBatch v2 bytes. Every commit passes through this module, so it is written for speed."""

from collections.abc import Sequence
from typing import Final

from protocol.newtypes import LeaderEpoch, Offset
from storage.errors import RecordTooLarge
from storage.format.batch_format import HEADER_BYTES, encode_batch
from storage.format.offset_record import (
    OFFSET_TAIL_BYTES_MIN,
    PLAIN_VERSION,
    count_committed_offsets,
    encode_partition_and_value,
    encode_plain_records,
    encode_plain_tail,
    key_size_and_prefix,
)
from storage.format.record_body import (
    NO_HEADERS,
    TWO_BYTE_DELTAS,
    encode_attributes_and_deltas,
    encode_field,
    size_field,
)
from storage.format.records import (
    OFFSET_VALUE_DEFAULT,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    encode_record_key,
    encode_record_value,
)

BATCH_BYTES_MAX: Final = 1_048_588
"""Kafka's default for `message.max.bytes`: 1 MiB and the 12 bytes before it."""


class BatchBuilder:
    """Gathers records and builds batches of at most `max_bytes`, header included.

    The records of one `append` stay together in one batch, so that they are read back wholly or not at all.
    The base offset is given last, to `build`: until then the log end offset need not be known.
    """

    __slots__ = ("_chunks", "_closed", "_compression", "_records", "_size", "_version", "count", "max_bytes")

    def __init__(
        self,
        max_bytes: int = BATCH_BYTES_MAX,
        offset_value_version: int = OFFSET_VALUE_DEFAULT,
        compression: int = 0,
    ) -> None:
        self.max_bytes = max_bytes
        self.count = 0
        """The number of records in all batches."""
        self._version = offset_value_version
        self._compression = compression
        self._closed: list[tuple[int, list[bytes]]] = []
        self._chunks: list[bytes] = []
        self._records = 0
        self._size = HEADER_BYTES

    def append_in_one_batch(self, records: Sequence[Record]) -> None:
        """Add records that must be written together.

        Raises RecordTooLarge, and changes nothing, if no batch can hold them together, or if a
        string among them is too long for its field.
        """
        chunk = self._encode(records, self._records)
        if self._size + len(chunk) > self.max_bytes:
            if self._records:
                chunk = self._encode(records, 0)
            self._next_batch(len(records), len(chunk))
        self._take(len(records), chunk)

    def append_offsets(self, commits: list[TopicOffsetCommits]) -> None:
        """Add one commit's offsets, which are written together; the fast path of the most frequent records.

        Raises RecordTooLarge, and changes nothing, as `append` does.
        """
        added = count_committed_offsets(commits)
        chunk = self._encode_offsets(commits, self._records)
        if self._size + len(chunk) > self.max_bytes:
            if self._records:
                chunk = self._encode_offsets(commits, 0)
            self._next_batch(added, len(chunk))
        self._take(added, chunk)

    def _next_batch(self, added: int, chunk_bytes: int) -> None:
        """Begin another batch, for records that do not fit in the rest of this one."""
        size = HEADER_BYTES + chunk_bytes
        if size > self.max_bytes:
            raise _too_large(added, size, self.max_bytes)
        self._closed.append((self._records, self._chunks))
        self._chunks = []
        self._records = 0
        self._size = HEADER_BYTES

    def _take(self, added: int, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._records += added
        self.count += added

    def build(self, base_offset: Offset, leader_epoch: LeaderEpoch, timestamp_ms: int) -> list[bytes]:
        """Return the batches, the first of them at `base_offset` and every record at `timestamp_ms`.

        Returns an empty list if nothing was appended. Can be called again, with another offset.
        """
        batches = []
        current = [(self._records, self._chunks)] if self._records else []
        for count, chunks in self._closed + current:
            batches.append(
                # Written by a coordinator, not by an idempotent producer, so it names none.
                encode_batch(
                    b"".join(chunks),
                    base_offset=base_offset,
                    last_offset_delta=count - 1,
                    leader_epoch=leader_epoch,
                    attributes=self._compression,
                    base_timestamp=timestamp_ms,
                    max_timestamp=timestamp_ms,
                    count=count,
                )
            )
            base_offset = Offset(base_offset + count)
        return batches

    def _encode_offsets(self, commits: list[TopicOffsetCommits], delta: int) -> bytes:
        """Encode a commit, whose first record has the offset delta `delta`."""
        version = self._version
        parts: list[bytes] = []
        least_bytes = 0
        for commit in commits:
            names = key_size_and_prefix(commit.group, commit.topic)
            # A commit that fits in no batch is refused before it is encoded.
            least_bytes += len(commit.values) * (OFFSET_TAIL_BYTES_MIN + len(names))
            if least_bytes > self.max_bytes:
                raise _too_large(count_committed_offsets(commits), least_bytes, self.max_bytes)
            rows = commit.rows
            if rows is not None and version == PLAIN_VERSION and delta + rows.count <= TWO_BYTE_DELTAS:
                time_ms = next(iter(commit.values.values())).commit_timestamp
                parts.append(encode_plain_records(names, rows, time_ms, delta))
                delta += rows.count
                continue
            for partition, value in commit.values.items():
                start = encode_attributes_and_deltas(delta)
                if version == PLAIN_VERSION and not value.metadata and value.expire_timestamp is None:
                    tail = encode_plain_tail(partition, value)
                else:
                    tail = encode_partition_and_value(partition, value, version)
                size = size_field(len(start) + len(names) + len(tail))
                parts.append(b"%b%b%b%b" % (size, start, names, tail))
                delta += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _encode(self, records: Sequence[Record], delta: int) -> bytes:
        """Encode `records`, whose first has the offset delta `delta`."""
        parts: list[bytes] = []
        version = self._version
        least_bytes = 0
        for record in records:
            if isinstance(record, OffsetCommitRecord):
                key = key_size_and_prefix(record.group, record.topic)
                tail = encode_partition_and_value(record.partition, record.value, version)
            else:
                key = encode_field(encode_record_key(record))
                tail = encode_field(encode_record_value(record, version)) + NO_HEADERS
            start = encode_attributes_and_deltas(delta)
            parts += (size_field(len(start) + len(key) + len(tail)), start, key, tail)
            delta += 1
            least_bytes += len(key) + len(tail)
            if least_bytes > self.max_bytes:
                raise _too_large(len(records), least_bytes, self.max_bytes)
        return b"".join(parts)


def _too_large(records: int, least_bytes: int, max_bytes: int) -> RecordTooLarge:
    return RecordTooLarge(
        f"{records} records need at least {least_bytes} bytes, a batch has at most {max_bytes}"
    )
