# SPDX-License-Identifier: Apache-2.0
"""Logs for the audit: whole ones made by storage's own writer, and every way in which one can be damaged."""

from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Self

from crc32c import crc32c

from audit.facts.inventory import LogInventory, join_directory_snapshots
from audit.options import AuditOptions
from audit.source.directory_snapshot import take_directory_snapshot
from protocol.newtypes import GroupId, LeaderEpoch, MemberId, Offset, Partition
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC, partition_dir, segment_name
from storage.format.batch import BatchBuilder, read_unchecked_batch
from storage.format.batch_format import CONTROL, CRC_START, HEADER_BYTES, TRANSACTIONAL
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    UnknownRecord,
)

PARTITIONS = 50
NOW = 1_790_000_000_000
AS_OF = "2026-09-21T14:13:20"  # NOW, as the command line takes it
"""When all audits of these logs are."""
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qh")
_CHECKSUM = Struct(">I")
_LONG = Struct(">q")
_INT = Struct(">i")


def group_in(partition: int, number: int = 0) -> str:
    """The name of a group that belongs to this partition; another one for each number."""
    names = (f"group-{partition}-{number}-{attempt}" for attempt in range(100_000))
    return next(name for name in names if partition_for(GroupId(name), PARTITIONS) == partition)


def commit(
    group: str,
    offset: int | None,
    *,
    partition: int = 0,
    at: int = NOW - HOUR,
    topic: str = "topic",
    **more: object,
) -> OffsetCommitRecord:
    """A commit, or a tombstone where the offset is None."""
    value = None
    if offset is not None:
        facts = {"leader_epoch": -1, "metadata": "", "commit_timestamp": at, **more}
        value = OffsetAndMetadata(offset, **facts)  # type: ignore[arg-type]
    return OffsetCommitRecord(GroupId(group), topic, partition, value)


def member(name: str, client: str = "client", instance: str | None = None) -> MemberValue:
    """A member of a stored group."""
    return MemberValue(MemberId(name), instance, client, "/127.0.0.1", 300_000, 45_000, b"", b"")


def stored(
    group: str,
    generation: int,
    members: Sequence[MemberValue] = (),
    *,
    at: int = NOW - HOUR,
    kind: str = "consumer",
) -> GroupMetadataRecord:
    """A group's own record."""
    leader = members[0].member_id if members else None
    value = GroupMetadataValue(kind, generation, "range" if members else None, leader, at, tuple(members))
    return GroupMetadataRecord(GroupId(group), value)


def resealed(batch: bytes) -> bytes:
    """The batch with the checksum that its bytes have now."""
    checksum = crc32c(memoryview(batch)[CRC_START:])
    return batch[:17] + _CHECKSUM.pack(checksum) + batch[CRC_START:]


def patched(batch: bytes, at: int, new: bytes) -> bytes:
    """The batch with other bytes at one place, and a checksum that fits them."""
    return resealed(batch[:at] + new + batch[at + len(new) :])


def make_batch(
    records: Sequence[Record],
    base_offset: int,
    *,
    epoch: int = 0,
    at: int = NOW - HOUR,
    producer: int | None = None,
    control: bool = False,
    compression: int = 0,
) -> bytes:
    """One batch; with a producer, of its transaction."""
    builder = BatchBuilder(compression=compression)
    builder.append_in_one_batch(records)
    (batch,) = builder.build(Offset(base_offset), LeaderEpoch(epoch), at)
    if producer is not None:
        attributes = read_unchecked_batch(batch).attributes | TRANSACTIONAL | (CONTROL if control else 0)
        batch = patched(batch, CRC_START, _ATTRIBUTES.pack(attributes))
        batch = patched(batch, 43, _PRODUCER.pack(producer, 0))
    return batch


def marker(kind: str, base_offset: int, producer: int, *, at: int = NOW - HOUR) -> bytes:
    """The end of a transaction: commit or abort."""
    key = b"\x00\x00" + (b"\x00\x01" if kind == "commit" else b"\x00\x00")
    record = UnknownRecord(0, key, b"\x00\x00\x00\x00\x00\x00")
    return make_batch([record], base_offset, producer=producer, control=True, at=at)


class Log:
    """One partition, written batch by batch."""

    def __init__(self, log_dir: Path, partition: int, *, start: int = 0) -> None:
        self.partition = partition
        self.group = group_in(partition)
        self.next_offset = start
        self.directory = partition_dir(log_dir, OFFSETS_TOPIC, Partition(partition))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._batches: list[bytes] = []
        self._file = self.directory / segment_name(Offset(start))
        self._file.touch()

    @property
    def file(self) -> Path:
        """The newest segment."""
        return self._file

    def add(
        self,
        *records: Record,
        epoch: int = 0,
        at: int = NOW - HOUR,
        producer: int | None = None,
        compression: int = 0,
    ) -> Self:
        """A batch of these records."""
        return self.raw(
            make_batch(
                records, self.next_offset, epoch=epoch, at=at, producer=producer, compression=compression
            )
        )

    def end(self, kind: str, producer: int, *, at: int = NOW - HOUR) -> Self:
        """A marker: commit or abort."""
        return self.raw(marker(kind, self.next_offset, producer, at=at))

    def skip(self, offsets: int) -> Self:
        """Leave offsets out."""
        self.next_offset += offsets
        return self

    def raw(self, batch: bytes) -> Self:
        """Bytes as they are; what follows goes on after the batch that they are."""
        with self._file.open("ab") as stream:
            stream.write(batch)
        if len(batch) >= HEADER_BYTES:
            self.next_offset = max(self.next_offset, read_unchecked_batch(batch).next_offset)
        return self

    def roll(self) -> Self:
        """Go on in a new segment."""
        self._file = self.directory / segment_name(Offset(self.next_offset))
        self._file.touch()
        return self


def healthy(log: Log) -> Log:
    """Some ordinary life: a group with a member, that commits and goes, and comes back."""
    group = log.group
    log.add(stored(group, 1, [member("a")]), at=NOW - 5 * HOUR)
    for number in range(3):
        log.add(*(commit(group, 10 * number + part, partition=part) for part in range(3)), at=NOW - 4 * HOUR)
    log.add(stored(group, 2), at=NOW - 3 * HOUR)
    log.add(stored(group, 3, [member("b")]), at=NOW - 2 * HOUR)
    return log.add(commit(group, 100), at=NOW - HOUR)


def inventory_of(options: AuditOptions) -> LogInventory:
    """What there is in the log directories of an audit, all of them local."""
    return join_directory_snapshots(
        {log_dir: take_directory_snapshot(log_dir) for log_dir in options.log_dirs}
    )
