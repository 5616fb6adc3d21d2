# SPDX-License-Identifier: Apache-2.0
"""The log port: what the groups of a partition need of the log that keeps them.

A log has partitions. Who leads one claims it under a leader epoch, reads it from the start, and then appends. It
takes typed records, all or none, and answers with a ticket; how records become batches, which offsets they get and
what one flush holds is the log's own business. Reading gives whole record batches in Kafka's format, which every
implementation shares, so that what loads a partition can decode them in slices.

An implementation may be slow and may fail in one partition while the others go on. Errors say what a coordinator
can do about them, and where, in the words of the implementation; there need not be files. `tests/log_contract`
holds every implementation to what is written here.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from coordinator.tickets import DurabilityTicket, ReplyDependencies
from protocol.errors import ErrorCode
from protocol.names import LeaderEpoch, Offset, Partition
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.records import OffsetCommits, Record


class LogError(Exception):
    """The log cannot do now what was asked of one partition, or of all; trying again later may help.

    `reason` is for people. `place` says where, in fields of a log line: a file and a position, or a topic and an
    offset; `where` says the same in words. `code` is what Kafka calls it where an append fails.
    """

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(
        self, reason: str, place: Mapping[str, object] | None = None, where: str | None = None
    ) -> None:
        self.reason = reason
        self.place = dict(place or {})
        if where is None:
            where = " ".join(f"{name} {value}" for name, value in self.place.items())
        super().__init__(f"{where}: {reason}" if where else reason)

    def fields(self, **more: object) -> dict[str, object]:
        """The error in parts, beside what else a structured log line says."""
        return {**self.place, **more, "reason": self.reason}


class LogUnavailable(LogError):
    """Nothing is wrong with the partition: what was asked can be asked again once `GroupLog.available` returns."""


class LogDamaged(LogError):
    """What the log holds of a partition cannot be understood, and stays so until a person has mended it."""


class LogFenced(LogError):
    """A leader with a newer epoch has the partition."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class LogWriter(Protocol):
    """Takes the records of one partition that this node leads.

    What one call brings stays together: it is read back wholly or not at all. Tickets of one writer become durable
    in the order of their appends. Once an append has failed, so do all that follow it: what they were decided on is
    lost. The same holds when the partition was claimed anew or released.
    """

    @property
    def partition(self) -> Partition:
        """The partition's number."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch that is written into every batch."""

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        """Take records, all or none. Raises RecordTooLarge, and takes nothing, when they fit in no batch together."""

    def append_offsets(self, commits: list[OffsetCommits]) -> DurabilityTicket:
        """Take the offsets of one commit, all or none. Raises RecordTooLarge, and takes nothing."""


class LogChunk(NamedTuple):
    """A part of a partition as it is read: whole record batches in Kafka's format."""

    data: bytes
    offset: Offset
    """From which offset on it was read; the first batch holds it, or a later one where there are gaps."""
    next_offset: Offset
    """Where the next piece begins."""


class Claim(Protocol):
    """A partition that was claimed, and is not written to yet."""

    @property
    def partition(self) -> Partition:
        """The partition's number."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch under which the partition is led: the one asked for, or a newer one where the log gives them."""

    @property
    def end_offset(self) -> Offset:
        """Up to which offset there is something to read."""

    @property
    def size_bytes(self) -> int:
        """About how much there is to read."""

    def read(self) -> AsyncIterator[LogChunk]:
        """All that the partition holds, from the start, in order.

        That is everything for which a ticket was durable before the claim, what else an earlier leader has appended
        with success, and nothing that comes later. Raises LogError and its kinds.
        """

    async def locate(self, piece: LogChunk, error: CorruptBatch | CorruptRecord) -> LogDamaged:
        """Where in the log the damage is that was found in a piece. Raises LogError."""

    def writer(self) -> LogWriter:
        """Begin to write. Raises LogUnavailable where the log has failed since the claim: claim and read anew."""


class GroupLog(Protocol):
    """A log with partitions, for the event loop of one node."""

    on_failed: Callable[[Sequence[LogWriter], LogError], None]
    """Called with writers of whose appends some were lost, and why, after their tickets have failed.

    They take nothing any more; what the log really holds is found by claiming their partitions again, which a leader
    that was fenced must not do.
    """

    async def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> Claim:
        """Lead a partition: writers of earlier claims take no more appends, and what they took is settled on return.

        An epoch can be claimed again by the same node. Raises LogFenced for one that is older than the newest claim,
        LogUnavailable, LogDamaged, and LogError.
        """

    async def available(self, partition: Partition) -> None:
        """Return once a partition may be claimed again after LogUnavailable or a failed append."""

    async def release(self, partition: Partition) -> object:
        """Lead a partition no more: its writer takes no more appends, and what it took is settled on return.

        Returns what the next leader is to be given where it needs something. Raises LogError where the partition cannot
        be given away yet; then this can be called again.
        """

    async def close(self) -> None:
        """Settle what was appended, and end. Raises LogError where something could not be made whole."""


class _WaitingTask:
    """A task that waits for a ticket."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self._future = future

    def release(self) -> None:
        """Let the task go on."""
        if not self._future.done():  # it was cancelled
            self._future.set_result(None)


async def ended(ticket: DurabilityTicket) -> None:
    """Return once a ticket is durable or has failed."""
    if ticket.is_pending:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket.wait(_WaitingTask(future))
        await future


async def all_durable(waiting: ReplyDependencies) -> bool:
    """Return once all that this waits for is durable, or one thing of it has failed; whether it is durable."""
    while (blocker := waiting.blocker()) is not None:
        if blocker.error is not None:
            return False
        await ended(blocker)
    return True
