# SPDX-License-Identifier: Apache-2.0
"""A log in memory: a topic that outlives nodes, and the log port over it, with delays and failures by partition.

Each partition is flushed by itself, as on the brokers of a cluster, and the ends of its appends come when a test wants
(`hold`, `let_go`, `fail`). A topic keeps real batches, in bytes.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from coordinator.logs.group_log import (
    LogChunk,
    LogDamaged,
    LogError,
    LogFenced,
    LogUnavailable,
    LogWriter,
    wait_for_ticket_end,
)
from coordinator.tickets import DURABLE, DurabilityTicket, end_tickets
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import BATCH_BYTES_MAX, BatchBuilder, read_unchecked_batch
from storage.format.records import Record, TopicOffsetCommits

PIECE_BATCHES = 2
"""So few that what is read comes in several pieces."""


class _Failure(NamedTuple):
    """What happens to the next append of a partition."""

    error: LogError
    kept: bool


class MemoryTopic:
    """What the nodes of a cluster have in common: batches by partition, and who may append."""

    def __init__(self, *, assigns_epochs: bool = False) -> None:
        """With `assigns_epochs` each claim gets a new epoch and is never refused, whichever epoch was asked for."""
        self.assigns_epochs = assigns_epochs
        self.batches: dict[Partition, list[bytes]] = defaultdict(list)
        self.epochs: dict[Partition, LeaderEpoch] = {}

    def end_offset(self, partition: Partition) -> Offset:
        """The offset that the next record gets."""
        batches = self.batches[partition]
        return read_unchecked_batch(batches[-1]).next_offset if batches else Offset(0)

    def check_epoch(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        """Raise LogFenced for a leader that another one has followed."""
        if leader_epoch < self.epochs.get(partition, -1):
            raise _fenced(partition)

    def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> LeaderEpoch:
        """Shut out everybody with an older epoch, and return the new one. Raises LogFenced."""
        if self.assigns_epochs:
            leader_epoch = LeaderEpoch(max(leader_epoch, self.epochs.get(partition, 0) + 1))
        self.check_epoch(partition, leader_epoch)
        self.epochs[partition] = leader_epoch
        return leader_epoch

    def append(
        self, partition: Partition, builder: BatchBuilder, leader_epoch: LeaderEpoch, timestamp_ms: int
    ) -> None:
        """Take what a leader appends. Raises LogFenced."""
        self.check_epoch(partition, leader_epoch)
        base_offset = self.end_offset(partition)
        self.batches[partition] += builder.build(base_offset, leader_epoch, timestamp_ms)


class MemoryWriter:
    """The LogWriter of one partition of a MemoryLog."""

    def __init__(self, log: "MemoryLog", partition: Partition, leader_epoch: LeaderEpoch) -> None:
        self._log = log
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.error: LogError | None = None
        """Why it takes nothing any more."""
        self.builder = log.new_builder()
        self.gathering: DurabilityTicket | None = None
        self.under_way: tuple[DurabilityTicket, BatchBuilder] | None = None
        self.newest = DURABLE

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        """Take records, all or none."""
        if self.error is not None:
            return self._refused(self.error)
        self.builder.append_in_one_batch(records)
        return self._ticket()

    def append_offsets(self, commits: list[TopicOffsetCommits]) -> DurabilityTicket:
        """Take the offsets of one commit, all or none."""
        if self.error is not None:
            return self._refused(self.error)
        self.builder.append_offsets(commits)
        return self._ticket()

    def _refused(self, error: LogError) -> DurabilityTicket:
        return DurabilityTicket(self.partition, self.newest.number + 1, error.code)

    def _ticket(self) -> DurabilityTicket:
        if self.gathering is None:
            self.newest = self.gathering = DurabilityTicket(self.partition, self.newest.number + 1)
            self._log.flush_soon(self)
        return self.gathering

    def end(self, error: LogError) -> None:
        """Take nothing any more; what was taken goes on."""
        self.error = self.error or error

    def lose(self, error: LogError) -> None:
        """What was taken and is not durable is lost, and nothing more is taken."""
        self.end(error)
        tickets = [self.under_way[0]] if self.under_way else []
        tickets += [self.gathering] if self.gathering else []
        self.under_way = self.gathering = None
        self.builder = self._log.new_builder()
        end_tickets(tickets, error.code)


class MemoryClaim:
    """The Claim of one partition of a MemoryLog."""

    def __init__(self, log: "MemoryLog", partition: Partition, leader_epoch: LeaderEpoch) -> None:
        self._log = log
        self._batches = list(log.topic.batches[partition])
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = log.topic.end_offset(partition)
        self.approximate_bytes = sum(map(len, self._batches))

    async def read(self) -> AsyncIterator[LogChunk]:
        """All batches there were when the partition was claimed."""
        offset = 0
        for start in range(0, len(self._batches), PIECE_BATCHES):
            await asyncio.sleep(0)
            self._log.check_usable(self.partition)
            batches = self._batches[start : start + PIECE_BATCHES]
            next_offset = read_unchecked_batch(batches[-1]).last_offset + 1
            yield LogChunk(b"".join(batches), Offset(offset), Offset(next_offset))
            offset = next_offset

    async def make_located_damage_error(
        self, piece: LogChunk, error: CorruptBatch | CorruptRecord
    ) -> LogDamaged:
        """The partition and the offset from which the piece was read."""
        return LogDamaged(error.reason, {"partition": self.partition, "offset": piece.offset})

    def open_writer(self) -> LogWriter:
        """Begin to write."""
        self._log.check_usable(self.partition)
        return self._log.new_writer(self.partition, self.leader_epoch)


class MemoryLog:
    """A GroupLog over a topic in memory, for one node."""

    def __init__(
        self,
        topic: MemoryTopic,
        *,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        wall_ms: Callable[[], int] = lambda: 1_700_000_000_000,
    ) -> None:
        self.topic = topic
        self.on_failed: Callable[[Sequence[LogWriter], LogError], None] = lambda _writers, _error: None
        self._batch_bytes_max = batch_bytes_max
        self._wall_ms = wall_ms
        self._writers: dict[Partition, MemoryWriter] = {}
        self._held: set[Partition] = set()
        self._failures: dict[Partition, _Failure] = {}
        self._broken: dict[Partition, asyncio.Event] = {}
        self._closed = False
        self.claim_errors: list[Exception] = []
        """What the next claims raise, the last one first."""

    # --- what a test asks for ---

    def hold(self, *partitions: Partition) -> None:
        """Let appends to these partitions stay pending until `let_go`."""
        self._held.update(partitions)

    def let_go(self, *partitions: Partition) -> None:
        """Let what was held of these partitions come to its end, and go on by itself from then on."""
        self._held.difference_update(partitions)
        for partition in partitions:
            writer = self._writers.get(partition)
            if writer is not None:
                self._end_flush(writer)

    def fail(
        self, partition: Partition, error: LogError, *, kept: bool = False, broken: bool = False
    ) -> None:
        """Let the next flush of a partition fail; with `kept` what it wrote is there all the same.

        With `broken` the partition cannot be used from then on, until `mend`.
        """
        self._failures[partition] = _Failure(error, kept)
        if broken:
            self._broken[partition] = asyncio.Event()

    def mend(self, partition: Partition) -> None:
        """Let a broken partition be used again."""
        broken = self._broken.pop(partition, None)
        if broken is not None:
            broken.set()

    def is_under_way(self, partition: Partition) -> bool:
        """Whether a flush of a partition has begun and not ended."""
        writer = self._writers.get(partition)
        return writer is not None and writer.under_way is not None

    # --- the port ---

    @property
    def is_idle(self) -> bool:
        """True if no append is pending."""
        return not any(writer.gathering or writer.under_way for writer in self._writers.values())

    async def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> MemoryClaim:
        """Lead a partition."""
        if self.claim_errors:
            raise self.claim_errors.pop()
        if not self.topic.assigns_epochs:
            self.topic.check_epoch(partition, leader_epoch)
        await self._end(partition, _fenced(partition))
        self.check_usable(partition)
        return MemoryClaim(self, partition, self.topic.claim(partition, leader_epoch))

    async def repair_log_or_wait(self, partition: Partition) -> None:
        """Return once a partition is not broken."""
        while partition in self._broken:
            await self._broken[partition].wait()

    async def release(self, partition: Partition) -> None:
        """Lead a partition no more."""
        await self._end(partition, _fenced(partition))

    async def close(self) -> None:
        """Settle what was appended, and end."""
        for partition in list(self._writers):
            await self._end(partition, LogUnavailable("the log is closed"))
        self._closed = True

    async def _end(self, partition: Partition, error: LogError) -> None:
        writer = self._writers.get(partition)
        if writer is not None:
            writer.end(error)
            await wait_for_ticket_end(writer.newest)
            self._writers.pop(partition, None)

    # --- below it ---

    def check_usable(self, partition: Partition) -> None:
        """Raise LogUnavailable for a partition that is broken, or once all is closed."""
        if self._closed or partition in self._broken:
            reason = "the log is closed" if self._closed else "it is broken"
            raise LogUnavailable(reason, {"partition": partition})

    def new_builder(self) -> BatchBuilder:
        """What gathers the records of one flush."""
        return BatchBuilder(self._batch_bytes_max)

    def new_writer(self, partition: Partition, leader_epoch: LeaderEpoch) -> MemoryWriter:
        """Let a claimed partition be written to."""
        writer = self._writers[partition] = MemoryWriter(self, partition, leader_epoch)
        return writer

    def flush_soon(self, writer: MemoryWriter) -> None:
        """A writer has got its first record since the last flush began."""
        asyncio.get_running_loop().call_soon(self._begin_flush, writer)

    def _begin_flush(self, writer: MemoryWriter) -> None:
        if writer.gathering is None or writer.under_way is not None:
            return
        writer.under_way = writer.gathering, writer.builder
        writer.gathering, writer.builder = None, self.new_builder()
        if writer.partition not in self._held:
            # The answer is another turn's: what comes until then gathers.
            asyncio.get_running_loop().call_soon(self._end_flush, writer)

    def _end_flush(self, writer: MemoryWriter) -> None:
        if writer.under_way is None or writer.partition in self._held:
            return
        ticket, builder = writer.under_way
        failure = self._failures.pop(writer.partition, None)
        try:
            if failure is None or failure.kept:
                self.topic.append(writer.partition, builder, writer.leader_epoch, self._wall_ms())
            if failure is not None:
                raise failure.error
        except LogError as error:
            writer.lose(error)
            self.on_failed([writer], error)
            return
        writer.under_way = None
        end_tickets([ticket])
        self._begin_flush(writer)


def _fenced(partition: Partition) -> LogFenced:
    return LogFenced("another leader has the partition", {"partition": partition})
