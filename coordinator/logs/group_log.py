# SPDX-License-Identifier: Apache-2.0
"""The log port: the interface of the log that stores the groups of a partition.

A log has partitions. A leader claims a partition under a leader epoch, reads it from the start, and then appends. The
log takes typed records, all or none, and returns a ticket; how records become batches, which offsets they get and
what one flush holds is up to the log. Reading gives whole record batches in Kafka's format, which every
implementation shares, so that the loader of a partition can decode them in slices.

An implementation may be slow and may fail in one partition while the others go on. Errors show what a coordinator
can do about them, and their place in the terms of the implementation, which need not have files. `tests/log_contract`
checks every implementation against these rules.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from coordinator.tickets import DurabilityTicket, ReplyDependencies
from protocol.errors import ErrorCode
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.records import Record, TopicOffsetCommits


class LogError(Exception):
    """An operation on one partition of the log, or on all, failed; trying again later may help.

    `reason` is for people. `place` is the place in fields of a log line: a file and a position, or a topic and an
    offset; `where` is the same in words. `code` is Kafka's error code for an append that fails like this.
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
        """Return the fields of the error, and those in `more`, for a structured log line."""
        return {**self.place, **more, "reason": self.reason}


class LogUnavailable(LogError):
    """The partition is intact: the operation can be tried again once `GroupLog.repair_log_or_wait` returns."""


class LogDamaged(LogError):
    """The log's data of a partition cannot be understood until a person has repaired it."""


class LogFenced(LogError):
    """A leader with a newer epoch has the partition."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class LogTimedOut(LogError):
    """An append was not confirmed in time; only a new claim shows whether the log has its records."""

    code = ErrorCode.REQUEST_TIMED_OUT


class LogWriter(Protocol):
    """Takes the records of one partition that this node leads.

    The records of one call stay together: they are read back wholly or not at all. Tickets of one writer become durable
    in the order of their appends. Once an append has failed, so do all that follow it: the state that they were decided
    on is lost. The same holds once the partition was claimed again or released.
    """

    @property
    def partition(self) -> Partition:
        """The number of the partition."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch that is written into every batch."""

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        """Append records, all or none. Raises RecordTooLarge, and appends nothing, if no batch holds all of them."""

    def append_offsets(self, commits: list[TopicOffsetCommits]) -> DurabilityTicket:
        """Append the offsets of one commit, all or none. Raises RecordTooLarge if no single batch holds them."""


class LogChunk(NamedTuple):
    """A part of a partition as it is read: whole record batches in Kafka's format."""

    data: bytes
    offset: Offset
    """The offset from which the chunk was read; the first batch holds it, or a later one if there are gaps."""
    next_offset: Offset
    """The offset at which the next chunk begins."""


class Claim(Protocol):
    """A partition that was claimed, and is not written to yet."""

    @property
    def partition(self) -> Partition:
        """The number of the partition."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch that the log has assigned, under which the partition is led."""

    @property
    def end_offset(self) -> Offset:
        """The offset up to which the partition can be read."""

    @property
    def approximate_bytes(self) -> int:
        """The approximate number of bytes to read."""

    def read(self) -> AsyncIterator[LogChunk]:
        """Read all that the partition holds, from the start, in order.

        That is all records whose ticket was durable before the claim, all others that an earlier leader has appended
        successfully, and none that come later. Raises LogError and its subclasses.
        """

    async def make_located_damage_error(
        self, piece: LogChunk, error: CorruptBatch | CorruptRecord
    ) -> LogDamaged:
        """Return an error with the place in the log of damage that was found in a chunk. Raises LogError."""

    def open_writer(self) -> LogWriter:
        """Return a writer. Raises LogUnavailable if the log has failed since the claim: claim and read again."""


class GroupLog(Protocol):
    """A log with partitions, for the event loop of one node."""

    on_failed: Callable[[Sequence[LogWriter], LogError], None]
    """Called with the writers that have lost appends, and the error, after their tickets have failed.

    These writers take no more appends; to find what the log really holds, a leader claims their partitions again, which
    a fenced leader must not do.
    """

    @property
    def is_idle(self) -> bool:
        """True if no append is pending."""

    async def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> Claim:
        """Claim a partition: earlier writers take no more appends, and those that they took are settled on return.

        The log assigns the epoch of the claim, which is at least `leader_epoch`. A log that assigns exactly that raises
        LogFenced if a newer epoch was claimed, and lets a node claim the same one again; for another, each claim has a
        newer epoch than the last. Raises LogUnavailable, LogDamaged, and LogError.
        """

    async def repair_log_or_wait(self, partition: Partition) -> None:
        """Return once a partition may be claimed again after LogUnavailable or a failed append."""

    async def release(self, partition: Partition) -> object:
        """Stop leading a partition: its writer takes no more appends, and its appends are settled on return.

        Returns the data that the next leader needs, if any. Raises LogError if the partition cannot be given away yet;
        `release` can then be called again.
        """

    async def close(self) -> None:
        """Settle all appends, and close the log. Raises LogError if something could not be made whole."""


class _WaitingTask:
    """A task that waits for a ticket."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self._future = future

    def resume_after_ticket(self) -> None:
        """Let the waiting task continue."""
        if not self._future.done():  # it was cancelled
            self._future.set_result(None)


async def wait_for_ticket_end(ticket: DurabilityTicket) -> None:
    """Return once a ticket is durable or has failed."""
    if ticket.is_pending:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket.add_waiter(_WaitingTask(future))
        await future


async def wait_for_durability_result(waiting: ReplyDependencies) -> bool:
    """Wait until all tickets of a reply are durable, or one has failed; return whether all are durable."""
    while (blocker := waiting.find_undurable_ticket()) is not None:
        if blocker.error is not None:
            return False
        await wait_for_ticket_end(blocker)
    return True
