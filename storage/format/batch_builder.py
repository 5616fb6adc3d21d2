# SPDX-License-Identifier: Apache-2.0
"""Records into RecordBatch v2 bytes. Every commit passes here, so it is written for speed."""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from crc32c import crc32c

from storage.errors import RecordTooLarge
from storage.format.batch_format import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    PREFIX,
    SUFFIX,
    TABLE_SIZE,
    ZIGZAG,
    zigzag,
)
from storage.format.compression import compress
from storage.format.records import (
    OFFSET_VALUE_DEFAULT,
    OffsetCommitRecord,
    OffsetCommits,
    Record,
    encode_record_key,
    encode_record_value,
    offset_key_prefix,
)

BATCH_BYTES_MAX: Final = 1_048_588
"""Kafka's default for `message.max.bytes`: 1 MiB and the 12 bytes before it."""

_RECORD_START: Final = tuple(b"\x00\x00" + delta for delta in ZIGZAG)
"""By offset delta: the record's attributes, its timestamp delta, which is always 0 here, and that delta."""
_INT: Final = Struct(">i")

# What follows the names in the record of an offset without metadata or expiry, the usual one: partition,
# size of the value (24, in zig-zag 48) and its version, then offset, leader epoch, metadata, time, and no headers.
# Version 3 has an empty STRING where version 4 has an empty COMPACT_STRING, and version 4 ends with no tagged fields.
_PLAIN_3: Final = Struct(">i3sqixxqx")
_PLAIN_4: Final = Struct(">i3sqiBqxx")
_VALUE_3: Final = b"\x30\x00\x03"
_VALUE_4: Final = b"\x30\x00\x04"


class BatchBuilder:
    """Gathers records and builds batches of at most `max_bytes`, header included.

    What one `append` brings stays together in one batch, so that it is read back wholly or not at all.
    The base offset comes last, in `build`: until then nobody needs to know where the log ends.
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
        """Records in all batches together."""
        self._version = offset_value_version
        self._compression = compression
        self._closed: list[tuple[int, list[bytes]]] = []
        self._chunks: list[bytes] = []
        self._records = 0
        self._size = HEADER_BYTES

    @property
    def batches(self) -> int:
        """How many batches `build` gives."""
        return len(self._closed) + (self._records > 0)

    def append(self, records: Sequence[Record]) -> None:
        """Add records that must be written together.

        Raises RecordTooLarge, and changes nothing, when no batch can hold them together, or when a
        string among them is longer than its field can be.
        """
        chunk = self._encode(records, self._records)
        if self._size + len(chunk) > self.max_bytes:
            if self._records:
                chunk = self._encode(records, 0)
            self._next_batch(len(records), len(chunk))
        self._take(len(records), chunk)

    def append_offsets(self, commits: Sequence[OffsetCommits]) -> None:
        """Add one commit's offsets, which are written together; the quick way for what happens most.

        Raises RecordTooLarge, and changes nothing, as `append` does.
        """
        added = sum([len(commit.values) for commit in commits])
        chunk = self._encode_offsets(commits, self._records)
        if self._size + len(chunk) > self.max_bytes:
            if self._records:
                chunk = self._encode_offsets(commits, 0)
            self._next_batch(added, len(chunk))
        self._take(added, chunk)

    def _next_batch(self, added: int, chunk_bytes: int) -> None:
        """Begin another batch, for records that are too long for what is left of this one."""
        size = HEADER_BYTES + chunk_bytes
        if size > self.max_bytes:
            raise RecordTooLarge(f"{added} records need {size} bytes, a batch has at most {self.max_bytes}")
        self._closed.append((self._records, self._chunks))
        self._chunks = []
        self._records = 0
        self._size = HEADER_BYTES

    def _take(self, added: int, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._records += added
        self.count += added

    def build(self, base_offset: int, leader_epoch: int, timestamp_ms: int) -> list[bytes]:
        """The batches, the first of them at `base_offset` and every record at `timestamp_ms`.

        An empty list when nothing was appended. Can be called again, with another offset.
        """
        batches = []
        current = [(self._records, self._chunks)] if self._records else []
        for count, chunks in self._closed + current:
            body = b"".join(chunks)
            if self._compression:
                body = compress(self._compression, body)
            # Written by a coordinator, not by an idempotent producer: -1 for all that names one.
            suffix = SUFFIX.pack(self._compression, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
            checksum = crc32c(body, crc32c(suffix))
            length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)
            prefix = PREFIX.pack(base_offset, length, leader_epoch, MAGIC, checksum)
            batches.append(b"".join((prefix, suffix, body)))
            base_offset += count
        return batches

    def _encode_offsets(self, commits: Sequence[OffsetCommits], delta: int) -> bytes:
        """The bytes of a commit, whose first record has the offset delta `delta`.

        All that the records of a topic have in common are its names, in the middle of each: what comes between them,
        the tail of one record and the head of the next, is joined by them.
        """
        version = self._version
        parts: list[bytes] = []
        pack = _PLAIN_3.pack
        for commit in commits:
            names = _names(commit.group, commit.topic)
            size = len(names) + _PLAIN_3.size
            between: list[bytes] = []
            tail = b""
            for partition, value in commit.values.items():
                start = _RECORD_START[delta] if delta < TABLE_SIZE else b"\x00\x00" + zigzag(delta)
                before = tail
                if version == 3 and not value.metadata and value.expire_timestamp is None:
                    tail = pack(partition, _VALUE_3, value.offset, value.leader_epoch, value.commit_timestamp)
                    length = len(start) + size
                else:
                    record = OffsetCommitRecord(commit.group, commit.topic, partition, value)
                    tail = _offset_tail(record, version)
                    length = len(start) + len(names) + len(tail)
                between.append(before + (ZIGZAG[length] if length < TABLE_SIZE else zigzag(length)) + start)
                delta += 1
            between.append(tail)
            parts.append(names.join(between))
        return b"".join(parts)

    def _encode(self, records: Sequence[Record], delta: int) -> bytes:
        """The bytes of `records`, whose first has the offset delta `delta`."""
        parts: list[bytes] = []
        group = topic = None
        version = self._version
        for record in records:
            if type(record) is OffsetCommitRecord:
                # The partitions of one commit follow each other: encode its two names once.
                if record.topic != topic or record.group != group:
                    group = record.group
                    topic = record.topic
                    names = _names(group, topic)
                key = names
                value = record.value
                if version == 3 and value and not value.metadata and value.expire_timestamp is None:
                    tail = _PLAIN_3.pack(
                        record.partition, _VALUE_3, value.offset, value.leader_epoch, value.commit_timestamp
                    )
                else:
                    tail = _offset_tail(record, version)
            else:
                key, tail = _key_and_tail(record, version)
            start = _RECORD_START[delta] if delta < TABLE_SIZE else b"\x00\x00" + zigzag(delta)
            length = len(start) + len(key) + len(tail)
            parts += (ZIGZAG[length] if length < TABLE_SIZE else zigzag(length), start, key, tail)
            delta += 1
        return b"".join(parts)


@lru_cache(maxsize=1 << 14)
def _names(group: str, topic: str) -> bytes:
    """The size of an offset's key, and the key up to its partition."""
    prefix = offset_key_prefix(group, topic)
    return zigzag(len(prefix) + 4) + prefix


def _offset_tail(record: OffsetCommitRecord, version: int) -> bytes:
    """Partition, size of the value, value, and no headers, for any offset and any value version."""
    value = record.value
    if (
        version == 4
        and value
        and not value.metadata
        and value.expire_timestamp is None
        and not value.topic_id
    ):
        return _PLAIN_4.pack(
            record.partition, _VALUE_4, value.offset, value.leader_epoch, 1, value.commit_timestamp
        )
    return _INT.pack(record.partition) + _sized(encode_record_value(record, version))


def _key_and_tail(record: Record, version: int) -> tuple[bytes, bytes]:
    """Key and value of any record, each after its size."""
    key = encode_record_key(record)
    return zigzag(len(key)) + key, _sized(encode_record_value(record, version))


def _sized(value: bytes | None) -> bytes:
    """A value after its size, -1 for a tombstone, and before no headers."""
    return b"\x01\x00" if value is None else zigzag(len(value)) + value + b"\x00"
