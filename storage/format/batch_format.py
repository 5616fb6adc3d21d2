# SPDX-License-Identifier: Apache-2.0
"""The header of a RecordBatch v2, 61 bytes: only this module reads and writes its fields.

    0   base offset        i64  of the first record, also of one that compaction has removed
    8   length             i32  of the bytes behind this field
    12  leader epoch       i32
    16  magic              i8   2; older formats have theirs in the same place
    17  checksum           u32  CRC-32C of the bytes behind this field
    21  attributes         i16
    23  last offset delta  i32  from the base offset; it stays when compaction removes the record
    27  base timestamp     i64  from which the records' timestamps count, or the delete horizon
    35  max timestamp      i64
    43  producer id        i64  -1 without a producer, as are the next two
    51  producer epoch     i16
    53  base sequence      i32
    57  count              i32  of the records

Kafka's class is `DefaultRecordBatch`; KIP-98 introduced this format. `record_body` handles the records behind it.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from crc32c import crc32c

from protocol.compiled_struct import FieldsValue
from protocol.frozen_struct import FrozenStruct
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import LeaderEpoch, Offset
from storage.format.compression import compress

MAGIC: Final = 2
HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""The size of base offset and length, which the length does not count."""
LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES
"""The length of a batch without records."""
MESSAGE_BYTES_MIN: Final = 14
"""The least number of bytes behind the length of a message before v2: checksum to two empty lengths."""

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CHECKSUM_AT: Final = 17
ATTRIBUTES_AT: Final = 21
CRC_START: Final = ATTRIBUTES_AT
"""The position from which the checksum covers the batch to its end."""
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
"""The attribute that makes the base timestamp the time until which tombstones of the batch are kept (KIP-534)."""

NONE: Final = -1
"""The timestamp, epoch, producer or sequence of a batch that has none."""
OFFSET_DELTA_MAX: Final = (1 << 31) - 1
"""The limit of offsets within a batch, or a segment's indexes, which count from the first one in 32 bits."""

HEADER: Final = Struct(">qiibIhiqqqhii")
_PACK_UNCHECKED: Final[Callable[..., bytes]] = Struct(">qiibI").pack  # up to the checksum
_PACK_CHECKED: Final[Callable[..., bytes]] = Struct(">hiqqqhii").pack  # from the attributes on
_EXTENT: Final = Struct(">qiibIhi")  # up to the last offset delta
EXTENT_BYTES: Final = 27
"""The bytes of a batch that give its end. No message before v2 is shorter, if its key has at least one byte."""
_UNPACK_SUMMARY: Final[Callable[[bytes, int], tuple[int, int, int, int, int, int]]] = Struct(
    ">qiib6xi8xq"
).unpack_from
"""Unpacks base offset, length, epoch, magic, last offset delta and max timestamp."""
_LENGTH_AND_CHECKSUM: Final = Struct(">i5xI")
_UNPACK_ENDS: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">q15xi").unpack_from
"""Unpacks the base offset and the last offset delta."""
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")


class Batch(FrozenStruct, frozen=True):
    """A batch's header, and the batch's place in `buffer`; nothing is copied.

    A message of an older format is a batch of its own, with -1 for missing fields. A compressed message
    holds many, and has the offset of the last; its `count` is 1 all the same.
    """

    buffer: bytes
    position: int
    size_bytes: int
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    magic: int
    checksum: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size_bytes

    @property
    def next_offset(self) -> Offset:
        """The offset after the batch's last one; compaction may have removed the record with the last one."""
        return Offset(self.last_offset + 1)

    @property
    def compression(self) -> int:
        """The codec's number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        """True if the batch's records wait for a marker."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """True if the batch holds a transaction's marker, and so no record of a group."""
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon(self) -> int | None:
        """The time (ms) until which the batch's tombstones are kept; None if never cleaned with any (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def data(self) -> bytes:
        """A copy of the batch's own bytes."""
        return self.buffer[self.position : self.position + self.size_bytes]


class BatchExtent(FrozenStruct, frozen=True):
    """The offsets of a batch, and where it ends in the bytes that hold its start."""

    base_offset: Offset
    next_offset: Offset
    """The offset after the batch's last one."""
    end: int
    """The position after the batch, which may lie behind the bytes."""


@mypyc_attr(acyclic=True)
class BatchSummary(FieldsValue):
    """The facts about a batch that a log and its indexes use: its place, its offsets, epoch and time.

    `position` is that in its file. `leader_epoch` and `max_timestamp` (milliseconds) are -1 for a message before v2.
    """

    __match_args__: Final = (
        "position",
        "size_bytes",
        "base_offset",
        "next_offset",
        "leader_epoch",
        "max_timestamp",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        position: int,
        size_bytes: int,
        base_offset: Offset,
        next_offset: Offset,
        leader_epoch: LeaderEpoch,
        max_timestamp: int,
    ) -> None:
        self.position: Final = position
        self.size_bytes: Final = size_bytes
        self.base_offset: Final = base_offset
        self.next_offset: Final = next_offset
        self.leader_epoch: Final = leader_epoch
        self.max_timestamp: Final = max_timestamp

    @property
    def end_position(self) -> int:
        """The position after the batch."""
        return self.position + self.size_bytes

    @property
    def last_offset(self) -> Offset:
        """The offset of the batch's last record, perhaps one that compaction has removed."""
        return Offset(self.next_offset - 1)


# ------------------------------------------------------------------ reading


def batch_extent(data: bytes, pos: int) -> BatchExtent | None:
    """Return the extent of the batch at `pos`, from its first EXTENT_BYTES; None if it cannot be a batch."""
    base_offset, length, _, magic, _, _, delta = _EXTENT.unpack_from(data, pos)
    if magic == MAGIC and length >= LENGTH_MIN and delta >= 0:
        return BatchExtent(base_offset, base_offset + delta + 1, pos + LOG_OVERHEAD_BYTES + length)
    if 0 <= magic < MAGIC and length >= MESSAGE_BYTES_MIN:
        return BatchExtent(base_offset, base_offset + 1, pos + LOG_OVERHEAD_BYTES + length)
    return None


def summarize(data: bytes, pos: int = 0, position: int = 0) -> BatchSummary:
    """Return the summary of the batch at `pos` in `data`, which is at `position` in its file.

    Raises ValueError if no batch starts there.
    """
    left = len(data) - pos
    if left >= HEADER_BYTES:
        base_offset, length, epoch, magic, delta, timestamp = _UNPACK_SUMMARY(data, pos)
        if magic == MAGIC and length >= LENGTH_MIN and delta >= 0:
            size = LOG_OVERHEAD_BYTES + length
            following = Offset(base_offset + delta + 1)
            return BatchSummary(position, size, Offset(base_offset), following, LeaderEpoch(epoch), timestamp)
    extent = batch_extent(data, pos) if left >= EXTENT_BYTES else None
    if extent is None:
        raise ValueError("these bytes are no record batch")
    first, following, epoch = extent.base_offset, extent.next_offset, LeaderEpoch(NONE)
    return BatchSummary(position, extent.end - pos, first, following, epoch, NONE)


def base_offset_of(batch: bytes) -> Offset:
    """Return the base offset of a whole batch of any format."""
    return Offset(_LONG.unpack_from(batch, BASE_OFFSET_AT)[0])


def next_offset_of(batch: bytes) -> Offset:
    """Return the offset after the last one of a whole batch of version 2."""
    base_offset, delta = _UNPACK_ENDS(batch, 0)
    return Offset(base_offset + delta + 1)


def record_count(batch: bytes) -> int:
    """Return the number of records in a whole batch of version 2."""
    return int(_INT.unpack_from(batch, COUNT_AT)[0])


def max_timestamp(batch: bytes) -> int:
    """Return the largest timestamp in a batch of version 2, from its header; -1 for an older or a cut one."""
    if len(batch) < HEADER_BYTES or batch[MAGIC_AT] != MAGIC:
        return NONE
    return int(_LONG.unpack_from(batch, MAX_TIMESTAMP_AT)[0])


def has_producer(data: bytes, pos: int) -> bool:
    """Return whether the batch at `pos`, with a whole header, is of version 2 and from a producer with an id."""
    return data[pos + MAGIC_AT] == MAGIC and _LONG.unpack_from(data, pos + PRODUCER_ID_AT)[0] != NONE


def is_transactional(data: bytes, pos: int) -> bool:
    """Return whether the batch at `pos`, with at least EXTENT_BYTES, is of version 2 and part of a transaction."""
    return (
        data[pos + MAGIC_AT] == MAGIC
        and _SHORT.unpack_from(data, pos + ATTRIBUTES_AT)[0] & TRANSACTIONAL != 0
    )


def length_and_checksum(data: bytes, pos: int) -> tuple[int, int]:
    """Return the length and checksum fields of the batch of version 2 at `pos`."""
    length, checksum = _LENGTH_AND_CHECKSUM.unpack_from(data, pos + LENGTH_AT)
    return length, checksum


# ------------------------------------------------------------------ writing


def encode_batch(
    uncompressed_body: bytes,
    *,
    base_offset: Offset,
    last_offset_delta: int,
    leader_epoch: LeaderEpoch,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
    producer_id: int = NONE,
    producer_epoch: int = NONE,
    base_sequence: int = NONE,
) -> bytes:
    """Encode a batch of version 2 around its records, which are compressed as the attributes say."""
    codec = attributes & COMPRESSION_MASK
    if codec:
        uncompressed_body = compress(codec, uncompressed_body)
    checked = _PACK_CHECKED(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    covered = checked + uncompressed_body
    checksum = crc32c(covered)
    return (
        _PACK_UNCHECKED(base_offset, LENGTH_MIN + len(uncompressed_body), leader_epoch, MAGIC, checksum)
        + covered
    )
