# SPDX-License-Identifier: Apache-2.0
"""A log under test: what the contract's tests ask of an implementation beside the port itself."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

from coordinator.logs.group_log import Claim, GroupLog, LogError, LogWriter
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import Batch, iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record, UnknownRecord
from tests.groups.harness import WALL_START_MS

BATCH_BYTES_MAX = 1_024


class Subject(ABC):
    """One implementation, on storage of its own. `log` is the node's that the test looks at."""

    fails_apart: bool
    """Whether a failed append takes none of other partitions with it."""

    assigns_epochs = False
    """Whether each claim gets an epoch of the log's own."""

    def __init__(self) -> None:
        self.failed: list[tuple[list[LogWriter], LogError]] = []
        """What `on_failed` has heard."""
        self.log = self.watched(self.open())

    def watched(self, log: GroupLog) -> GroupLog:
        """Hear what this log has to say of failures."""
        log.on_failed = lambda writers, error: self.failed.append((list(writers), error))
        return log

    async def close(self) -> None:
        """End what still runs."""
        with suppress(LogError):  # the test has broken it
            await self.log.close()

    @abstractmethod
    def open(self) -> GroupLog:
        """The log of a node that starts now."""

    @abstractmethod
    async def successor(self, *partitions: Partition) -> GroupLog:
        """The log of another node, which gets these partitions once the first one has released them."""

    @abstractmethod
    def hold(self, partition: Partition) -> None:
        """Let appends to a partition, and to others perhaps, stay pending."""

    @abstractmethod
    async def until_held(self, partition: Partition) -> None:
        """Return once an append is held."""

    @abstractmethod
    def let_go(self, partition: Partition) -> None:
        """Let what is held come to its end."""

    @abstractmethod
    def fail_next(self, partition: Partition, *, kept: bool) -> None:
        """Let the next append to a partition fail; with `kept` it was written all the same, where that is possible."""

    def time_out_next(self, partition: Partition, *, kept: bool) -> bool:
        """Let the next append to a partition time out, and return True; False if no append of this log ever does."""
        return False

    @abstractmethod
    def break_down(self, partition: Partition) -> None:
        """Let the next append to a partition, and all that is done with the partition after it, fail until `mend`."""

    @abstractmethod
    def mend(self, partition: Partition) -> None:
        """Let what broke down be used again."""

    @abstractmethod
    async def plant(self, partition: Partition, batch: bytes) -> None:
        """Put a batch at the end of a partition that was not claimed yet."""

    @abstractmethod
    def damage(self, partition: Partition) -> None:
        """Change a byte in the middle of what a partition holds; it was not claimed since the start."""

    @abstractmethod
    async def restart(self) -> GroupLog:
        """End the node in good order and start it again; `log` is the new one's."""


def offset(value: int, partition: int = 0, *, group: str = "g", metadata: str = "") -> Record:
    """The commit of an offset, a record like any other."""
    return OffsetCommitRecord(
        GroupId(group), "t", partition, OffsetAndMetadata(Offset(value), -1, metadata, WALL_START_MS, None)
    )


async def batches_of(claim: Claim) -> list[Batch]:
    """All batches of a claimed partition. Raises LogDamaged for what cannot be understood."""
    found: list[Batch] = []
    loader = RecordDecoder()
    async for piece in claim.read():
        try:
            for batch in iter_batches(piece.data, check=True):
                loader.decode_batch(batch)
                found.append(batch)
        except (CorruptBatch, CorruptRecord) as error:
            raise await claim.make_located_damage_error(piece, error) from error
    return found


def records_in(batches: Sequence[Batch]) -> list[Record]:
    """The records of batches, in order."""
    loader = RecordDecoder()
    return [record for batch in batches for record in loader.decode_batch(batch)]


async def records_of(claim: Claim) -> list[Record]:
    """All records of a claimed partition."""
    return records_in(await batches_of(claim))


def values(records: Sequence[Record]) -> list[int]:
    """The offsets of commits in a log; what is of another kind is left out."""
    return [
        record.value.offset
        for record in records
        if isinstance(record, OffsetCommitRecord) and record.value is not None
    ]


def foreign(records: Sequence[Record]) -> list[UnknownRecord]:
    """The records in a log that are not understood here."""
    return [record for record in records if isinstance(record, UnknownRecord)]


async def lead(log: GroupLog, partition: Partition, leader_epoch: int = 0) -> LogWriter:
    """Claim a partition, read it, and begin to write."""
    claim = await log.claim(partition, LeaderEpoch(leader_epoch))
    async for _ in claim.read():
        pass
    return claim.open_writer()
