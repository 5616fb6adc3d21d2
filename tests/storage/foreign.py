# SPDX-License-Identifier: Apache-2.0
"""Batches as a Kafka broker writes them for transactions."""

from collections.abc import Sequence
from struct import pack_into

from crc32c import crc32c

from protocol.newtypes import LeaderEpoch, Offset
from storage.format.batch import BatchBuilder
from storage.format.batch_format import CONTROL, CRC_START, TRANSACTIONAL
from storage.format.records import Record, UnknownRecord

NOW = 1_700_000_000_000


def transactional(records: Sequence[Record], base_offset: int, producer_id: int) -> bytes:
    """A batch of a transaction."""
    return _from_producer(_built(records, base_offset), producer_id, TRANSACTIONAL)


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    return control(base_offset, producer_id, b"\0\0" + (b"\0\1" if commit else b"\0\0"))


def control(base_offset: int, producer_id: int, key: bytes) -> bytes:
    """A control batch with any key: version and type are two bytes each."""
    value = bytes(6)  # version, and the coordinator's epoch
    batch = _built([UnknownRecord(0, key, value)], base_offset)
    return _from_producer(batch, producer_id, TRANSACTIONAL | CONTROL)


def plain(records: Sequence[Record], base_offset: int) -> bytes:
    """An ordinary batch."""
    return _built(records, base_offset)


def _built(records: Sequence[Record], base_offset: int) -> bytes:
    builder = BatchBuilder(1 << 24)
    builder.append_in_one_batch(records)
    (batch,) = builder.build(Offset(base_offset), LeaderEpoch(0), NOW)
    return batch


def _from_producer(batch: bytes, producer_id: int, attributes: int) -> bytes:
    changed = bytearray(batch)
    pack_into(">h", changed, CRC_START, attributes)
    pack_into(">qhi", changed, 43, producer_id, 0, 0)
    pack_into(">I", changed, 17, crc32c(bytes(changed[CRC_START:])))
    return bytes(changed)
