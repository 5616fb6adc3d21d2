# SPDX-License-Identifier: Apache-2.0
"""Decodes batches into typed records, fast: a partition must be loaded through this before it can serve.

An offset in its most common form, with value version 3 and no metadata, is unpacked in one step;
every other record takes the ordinary path through `decode_key_and_value`, with the same result.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Final

from protocol.newtypes import GroupId, Offset
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import Batch, decompress_batch_body
from storage.format.batch_format import MAGIC
from storage.format.offset_record import (
    OFFSET_KEY,
    PARTITION_BYTES,
    PLAIN_TAIL,
    PLAIN_TAIL_BYTES,
    PLAIN_VALUE_SIZE,
    PLAIN_VERSION,
    decode_utf8_name_as_java,
    find_name_ends,
)
from storage.format.old_messages import iter_message_records
from storage.format.record_body import check_end, find_field_positions, read_field
from storage.format.records import (
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    decode_key_and_value,
)
from storage.format.varints import read_zigzag

NAMES_MAX: Final = 50_000

Names = tuple[GroupId, str]


class RecordDecoder:
    """Decodes one batch after the other, and lets their records share the names of groups and topics."""

    __slots__ = ("_names", "_names_max", "_topics")

    def __init__(self, names_max: int = NAMES_MAX) -> None:
        self._names_max = names_max
        # By the bytes of a key from its size to its topic. Bounded, since it only saves time.
        self._names: dict[bytes, Names | None] = {}
        self._topics: dict[bytes, str] = {}

    def decode_batch(self, batch: Batch) -> list[Record]:
        """Return the records of a batch one by one, in order; otherwise as `decode_with_commits_merged_by_topic`."""
        records: list[Record] = []
        for record in self.decode_with_commits_merged_by_topic(batch):
            if isinstance(record, TopicOffsetCommits):
                group, topic = record.group, record.topic
                records += [OffsetCommitRecord(group, topic, each, v) for each, v in record.values.items()]
            else:
                records.append(record)
        return records

    def decode_with_commits_merged_by_topic(self, batch: Batch) -> list[Record | TopicOffsetCommits]:
        """Return the records of a batch, in order; none for a control batch, which holds a transaction's marker.

        Successive offsets of one group and topic are returned as one TopicOffsetCommits, with each partition at
        most once; tombstones, and records in unusual forms, are returned one by one. Raises CorruptBatch, and
        CorruptRecord if a record of a known kind cannot be decoded.
        """
        if batch.is_control:
            return []
        try:
            if batch.magic < MAGIC:
                return [decode_key_and_value(key, value) for _, _, key, value in iter_message_records(batch)]
            return self._load(batch, decompress_batch_body(batch))
        except CorruptRecord as error:
            where = f"batch of offsets {batch.base_offset} to {batch.last_offset}"
            raise CorruptRecord(f"{where}: {error.reason}") from error
        except (IndexError, ValueError) as error:
            if isinstance(error, CorruptBatch):
                raise
            raise CorruptBatch(batch.position, f"a record is damaged: {error}") from error

    def _load(self, batch: Batch, body: bytes) -> list[Record | TopicOffsetCommits]:
        records: list[Record | TopicOffsetCommits] = []
        known = self._names
        unpack: Callable[[bytes, int], tuple[int, int, int, Offset, int, int, int, int]] = (
            PLAIN_TAIL.unpack_from
        )
        stop = len(body)
        pos = 0
        left = batch.count
        while left:
            start = pos
            left -= 1
            delta, pos, end = find_field_positions(body, start)
            if not pos < end <= stop:
                raise CorruptBatch(batch.position, f"a record ends at byte {end} of {stop}")
            # If this is an offset in the usual form, its last bytes are these.
            tail = end - PLAIN_TAIL_BYTES
            if tail > pos:
                partition, size, version, offset, epoch, metadata, time, headers = unpack(body, tail)
                if size == PLAIN_VALUE_SIZE and version == PLAIN_VERSION and metadata == 0 and headers == 0:
                    key = body[pos:tail]
                    names = known[key] if key in known else self._learn(key)
                    if names is not None:
                        values = {partition: OffsetAndMetadata(offset, epoch, "", time)}
                        records.append(TopicOffsetCommits(names[0], names[1], values))
                        taken = _take_alike(body, start, delta, pos, tail, left, values)
                        left -= taken
                        pos = end + taken * (end - start)
                        continue
            records.append(_load_one(batch, body, pos, end))
            pos = end
        check_end(batch, pos, stop)
        return records

    def _learn(self, key: bytes) -> Names | None:
        """Return the names in a key, which starts with its size; None if it is no offset's, or of another length."""
        if len(self._names) >= self._names_max:
            self._names.clear()
        names = self._names[key] = self._parse(key)
        return names

    def _parse(self, key: bytes) -> Names | None:
        size, pos = read_zigzag(key, 0)
        if size != len(key) - pos + PARTITION_BYTES or key[pos : pos + 2] != OFFSET_KEY:
            return None
        try:
            group_end, topic_end = find_name_ends(key, pos)
        except CorruptRecord:
            return None
        if topic_end != len(key):
            return None
        topic_bytes = key[group_end + 2 :]
        topic = self._topics.get(topic_bytes)
        if topic is None:
            if len(self._topics) >= self._names_max:
                self._topics.clear()
            topic = self._topics[topic_bytes] = decode_utf8_name_as_java(topic_bytes)
        return GroupId(decode_utf8_name_as_java(key[pos + 4 : group_end])), topic


def _take_alike(
    body: bytes,
    start: int,
    delta_at: int,
    key_at: int,
    tail: int,
    left: int,
    values: dict[int, OffsetAndMetadata],
) -> int:
    """Unpack the records behind the one at `start` that differ from it only in delta, partition and value.

    Its parts begin at `delta_at`, `key_at` and `tail`; the others have the same sizes. Puts at most `left` records
    into `values`, up to the first one that differs otherwise, or whose partition is a duplicate, and returns their
    number.
    """
    pos = tail + PLAIN_TAIL_BYTES
    size_bytes = pos - start
    delta_bytes = key_at - delta_at
    key = body[key_at:tail]
    if delta_bytes > 2 or body[pos + key_at - start : pos + tail - start] != key:
        return 0
    head = body[start:delta_at]
    # The delta is a varint: the highest bit of its last byte is 0.
    mask, wanted = (0x80, 0) if delta_bytes == 1 else (0x8080, 0x8000)
    alike = _alike(len(head), delta_bytes, len(key))
    taken = 0
    stop = pos + min(left, (len(body) - pos) // size_bytes) * size_bytes
    row: tuple[bytes, int, bytes, int, int, int, Offset, int, int, int, int]
    for row in alike.iter_unpack(memoryview(body)[pos:stop]):
        (
            its_head,
            delta,
            its_key,
            partition,
            size,
            version,
            offset,
            epoch,
            metadata,
            time,
            headers,
        ) = row
        if (
            its_key != key
            or its_head != head
            or delta & mask != wanted
            or size != PLAIN_VALUE_SIZE
            or version != PLAIN_VERSION
            or metadata
            or headers
            or partition in values
        ):
            break
        values[partition] = OffsetAndMetadata(offset, epoch, "", time)
        taken += 1
    return taken


@lru_cache(maxsize=256)
def _alike(head_bytes: int, delta_bytes: int, key_bytes: int) -> Struct:
    return Struct(f">{head_bytes}s{'BH'[delta_bytes - 1]}{key_bytes}s{PLAIN_TAIL.format[1:]}")


def _load_one(batch: Batch, body: bytes, pos: int, end: int) -> Record:
    """Return the record, of any kind, whose key's size is at `pos`."""
    key, pos = read_field(body, pos)
    value, pos = read_field(body, pos)
    if pos > end:
        raise CorruptBatch(batch.position, f"a record ends at byte {end}, and its value at {pos}")
    return decode_key_and_value(key, value)
