# SPDX-License-Identifier: Apache-2.0
"""Batches into typed records, fast: a partition is loaded through this before it can serve.

An offset as it is nearly always written, with value version 3 and no metadata, is unpacked in one go;
everything else takes the ordinary way through `decode_record`, and comes out the same.
"""

from struct import Struct
from typing import Final

from storage.batch import Batch, batch_body
from storage.batch_format import MAGIC, read_zigzag
from storage.errors import CorruptBatch, CorruptRecord
from storage.old_messages import iter_messages
from storage.records import OffsetAndMetadata, OffsetCommitRecord, Record, decode_record

_PLAIN: Final = Struct(">iBhqihqB")
"""partition, size of the value (24, in zig-zag 48), its version, offset, epoch, size of metadata, time; headers"""
_PLAIN_BYTES: Final = _PLAIN.size
_NAMES_MAX: Final = 50_000

Names = tuple[str, str]


class RecordLoader:
    """Decodes one batch after the other, and lets their records share the names of groups and topics."""

    __slots__ = ("_names", "_topics")

    def __init__(self) -> None:
        # By the bytes of a key from its size to its topic. Bounded, since it is only there to save time.
        self._names: dict[bytes, Names | None] = {}
        self._topics: dict[bytes, str] = {}

    def load(self, batch: Batch) -> list[Record]:
        """The records of a batch, in order; none for a control batch, which holds a transaction's marker.

        Raises CorruptBatch, and CorruptRecord when a record of a known kind cannot be understood.
        """
        if batch.is_control:
            return []
        try:
            if batch.magic < MAGIC:
                return [decode_record(key, value) for _, _, key, value in iter_messages(batch)]
            return self._load(batch, batch_body(batch))
        except CorruptRecord as error:
            where = f"batch of offsets {batch.base_offset} to {batch.last_offset}"
            raise CorruptRecord(f"{where}: {error.reason}") from error
        except (IndexError, ValueError) as error:
            if isinstance(error, CorruptBatch):
                raise
            raise CorruptBatch(batch.position, f"a record is damaged: {error}") from error

    def _load(self, batch: Batch, body: bytes) -> list[Record]:
        records: list[Record] = []
        known = self._names
        unpack = _PLAIN.unpack_from
        stop = len(body)
        pos = 0
        for _ in range(batch.count):
            # The record's size; its attributes and deltas are of no interest here.
            number = body[pos]
            if number < 0x80:
                pos += 1
                end = pos + (number >> 1)
            else:
                number, pos = read_zigzag(body, pos)
                end = pos + number
            pos += 1
            while body[pos] > 0x7F:
                pos += 1
            pos += 1
            while body[pos] > 0x7F:
                pos += 1
            pos += 1
            if not pos < end <= stop:
                raise CorruptBatch(batch.position, f"a record ends at byte {end} of {stop}")
            # If this is an offset in the usual form, its last bytes are these.
            tail = end - _PLAIN_BYTES
            if tail > pos:
                partition, size, version, offset, epoch, metadata, time, headers = unpack(body, tail)
                if size == 48 and version == 3 and metadata == 0 and headers == 0:
                    key = body[pos:tail]
                    names = known[key] if key in known else self._learn(key)
                    if names is not None:
                        value = OffsetAndMetadata(offset, epoch, "", time)
                        records.append(OffsetCommitRecord(names[0], names[1], partition, value))
                        pos = end
                        continue
            records.append(_load_one(batch, body, pos, end))
            pos = end
        if pos != stop:
            raise CorruptBatch(batch.position, f"{stop - pos} bytes follow its {batch.count} records")
        return records

    def _learn(self, key: bytes) -> Names | None:
        """The names in a key, which starts with its size; None when it is no offset's, or not just so long."""
        if len(self._names) >= _NAMES_MAX:
            self._names.clear()
        names = self._names[key] = self._parse(key)
        return names

    def _parse(self, key: bytes) -> Names | None:
        size, pos = (key[0], 1) if key[0] < 0x80 else (key[0] & 0x7F | key[1] << 7, 2)
        # Names are measured in 15 bits; of 16 the highest would make the size negative.
        if size >> 1 != len(key) - pos + 4 or size > 0x3FFF or key[pos : pos + 2] != b"\x00\x01":
            return None
        group_end = pos + 4 + (key[pos + 2] << 8 | key[pos + 3])
        rest = key[group_end:]
        topic = self._topics.get(rest)
        if topic is None:
            if len(rest) < 2 or rest[0] << 8 | rest[1] != len(rest) - 2:
                return None
            if len(self._topics) >= _NAMES_MAX:
                self._topics.clear()
            topic = self._topics[rest] = rest[2:].decode("utf-8", "replace")
        return key[pos + 4 : group_end].decode("utf-8", "replace"), topic


def _load_one(batch: Batch, body: bytes, pos: int, end: int) -> Record:
    """The record of any kind whose key's size is at `pos`."""
    size, pos = read_zigzag(body, pos)
    key = None
    if size >= 0:
        key = body[pos : pos + size]
        pos += size
    size, pos = read_zigzag(body, pos)
    value = None
    if size >= 0:
        value = body[pos : pos + size]
        pos += size
    if pos > end:
        raise CorruptBatch(batch.position, f"a record ends at byte {end}, and its value at {pos}")
    return decode_record(key, value)
