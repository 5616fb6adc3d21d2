# SPDX-License-Identifier: Apache-2.0
"""What the log accepted, batch by batch, by any node: the truth that memory and compacted logs are compared with.

It stands before storage. A batch that was on its way when the disk failed or the process ended may be found in
the log later, or not; the next one tells by its offset.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.migration.ledger import is_ledger
from coordinator.migration.model import Mark
from protocol.consumer_protocol import decode_assignment
from protocol.newtypes import GroupId, Partition
from storage.format.batch import iter_batches, iter_records
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from tests.simulation import serdes
from tests.simulation.history import Broken
from tests.simulation.serdes import GroupKey, GroupValue, OffsetKey, OffsetValue
from tests.simulation.settings import EXPIRY_INTERVAL_MS, RETENTION_MINUTES

if TYPE_CHECKING:
    from tests.simulation.world import World

RETENTION_MS = RETENTION_MINUTES * 60_000
"""partition, base offset, batch"""
TopicPartition = tuple[str, int]


@dataclass(slots=True)
class GroupBook:
    """One group by its records."""

    value: GroupValue | None = None
    offsets: dict[TopicPartition, OffsetValue] = field(default_factory=dict)


class Batch(NamedTuple):
    """One accepted batch."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    at_ms: int
    """The wall clock when it was written."""
    records: list[tuple[OffsetKey | GroupKey, OffsetValue | GroupValue | None]]


@dataclass(slots=True)
class PartitionBook:
    """One partition by its records."""

    end_offset: int = 0
    leader_epoch: int = -1
    groups: dict[str, GroupBook] = field(default_factory=dict)
    doubtful: list[Batch] = field(default_factory=list)
    """Batches that may be in the log, in order: no client has heard that they are."""


class Ledger:
    """The books of all partitions."""

    def __init__(self, world: "World") -> None:
        self.partitions: dict[int, PartitionBook] = {}
        self._world = world
        self._keys: dict[bytes | None, OffsetKey | GroupKey] = {}

    def watch(self, log: LogManager) -> None:
        """See every batch that this log is given from now on."""
        append = log.append

        def watched(entries: Sequence[Entry], *, sync: bool) -> None:
            batches = self._begin(entries)
            append(entries, sync=sync)
            with self._reporting():
                for partition, batch in batches:
                    self._accept(partition, self.book(partition), batch)

        log.append = watched  # type: ignore[method-assign]

    def _begin(self, entries: Sequence[Entry]) -> list[tuple[Partition, Batch]]:
        """These batches are on their way to the log."""
        with self._reporting():
            batches = [(entry.partition, self._read(entry.batch)) for entry in entries]
            # A partition may have several; only the first says where the log ends.
            for partition, batch in dict(reversed(batches)).items():
                self._come_to(partition, self.book(partition), batch.base_offset)
            for partition, batch in batches:
                self.book(partition).doubtful.append(batch)
        return batches

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """The node would take what is raised here for an error of its disk."""
        try:
            yield
        except Broken as error:
            self._world.fail(error)
            raise

    def book(self, partition: int) -> PartitionBook:
        """The book of a partition."""
        return self.partitions.setdefault(partition, PartitionBook())

    def group(self, partition: int, group: str) -> GroupBook:
        """What the log says of a group."""
        return self.book(partition).groups.get(group) or GroupBook()

    def found(self, partition: int, end_offset: int) -> PartitionBook:
        """A node leads the partition, whose log ends there; returns its book, settled up to there."""
        book = self.book(partition)
        self._come_to(partition, book, end_offset)
        return book

    def facts(self) -> dict[str, dict[str, Any]]:
        """All groups for a JSON file: members by id with their partitions, and offsets by `topic partition`."""
        return {
            name: {
                "generation": None if group.value is None else group.value.generation,
                "members": {
                    each.member_id: {
                        topic: sorted(part)
                        for topic, part in (decode_assignment(each.assignment) or {}).items()
                    }
                    for each in (() if group.value is None else group.value.members)
                },
                "offsets": {
                    f"{topic} {partition}": [value.offset, value.commit_timestamp]
                    for (topic, partition), value in group.offsets.items()
                },
            }
            for book in self.partitions.values()
            for name, group in book.groups.items()
        }

    def _read(self, data: bytes) -> Batch:
        (batch,) = iter_batches(data, check=True)
        records = []
        for _, _, key, value in iter_records(batch):
            try:
                records.append(self._record(key, value))
            except serdes.Unreadable as error:
                raise Broken("every record is readable by Kafka's serdes", str(error)) from None
        return Batch(batch.base_offset, batch.next_offset, batch.leader_epoch, batch.max_timestamp, records)

    def _record(
        self, key: bytes | None, value: bytes | None
    ) -> tuple[OffsetKey | GroupKey, OffsetValue | GroupValue | None]:
        known = self._keys.get(key)
        if known is None or value is not None:
            known, decoded = serdes.read_record(key, value)
            self._keys[key] = known
            return known, decoded
        return known, None

    def _come_to(self, partition: int, book: PartitionBook, offset: int) -> None:
        """The log ends there: what was doubtful is in it so far, and the rest is not."""
        doubtful, book.doubtful = book.doubtful, []
        for batch in doubtful:
            if batch.end_offset <= offset and batch.base_offset == book.end_offset:
                self._accept(partition, book, batch)
        if book.end_offset > offset:
            raise Broken(
                "what was accepted stays",
                f"partition {partition} ends at {offset} and was accepted up to {book.end_offset}",
            )
        if book.end_offset < offset:
            raise Broken("offsets have no gaps", f"partition {partition}: {offset} follows {book.end_offset}")

    def _accept(self, partition: int, book: PartitionBook, batch: Batch) -> None:
        book.doubtful = [each for each in book.doubtful if each is not batch]
        if batch.base_offset != book.end_offset:
            raise Broken(
                "an offset is given once",
                f"partition {partition}: {batch.base_offset} after {book.end_offset}",
            )
        if batch.leader_epoch < book.leader_epoch:
            raise Broken(
                "a leader epoch never goes back",
                f"partition {partition}: {batch.leader_epoch} after {book.leader_epoch}",
            )
        book.end_offset = batch.end_offset
        # A node that is alone has no others beside it: its partitions move in simulations only, which nothing notes.
        if not self._world.is_alone:
            book.leader_epoch = batch.leader_epoch
        for key, value in batch.records:
            if isinstance(key, OffsetKey):
                self._offset(book, key, value, batch)
            else:
                self._metadata(book, key, value)

    def _offset(self, book: PartitionBook, key: OffsetKey, value: Any, batch: Batch) -> None:
        group = book.groups.get(key.group)
        where = (key.topic, key.partition)
        if value is not None:
            if group is None:
                group = book.groups[key.group] = GroupBook()
            group.offsets[where] = value
            return
        removed = None if group is None else group.offsets.pop(where, None)
        if group is None or removed is None:
            return
        if self._may_go(book, key):
            pass
        elif not self._world.history.is_being_deleted((key.group, key.topic, key.partition)):
            self._check_expiry(key, group, removed, batch.at_ms)
            self._world.history.counts["expired"] += 1
        self._world.history.removed((key.group, key.topic, key.partition))
        if group.value is None and not group.offsets:
            del book.groups[key.group]

    def _may_go(self, book: PartitionBook, key: OffsetKey) -> bool:
        """Whether this is a mark of a group that was taken over, or of a group that is being given back."""
        if is_ledger(GroupId(key.group)):
            return True
        marks = (
            group.offsets.get((key.group, 0))
            for name, group in book.groups.items()
            if is_ledger(GroupId(name))
        )
        return any(mark is not None and mark.offset == Mark.UNDER_WAY for mark in marks)

    def _metadata(self, book: PartitionBook, key: GroupKey, value: Any) -> None:
        group = book.groups.get(key.group)
        if value is None:
            if group is not None and group.offsets:
                raise Broken("a group's tombstone comes after those of its offsets", key.group)
            book.groups.pop(key.group, None)
            self._world.history.forgotten(key.group)
            return
        if group is None:
            group = book.groups[key.group] = GroupBook()
        if group.value is not None and value.generation < group.value.generation:
            raise Broken(
                "a generation never decreases",
                f"{key.group}: {value.generation} after {group.value.generation} in the log",
            )
        group.value = value

    def _check_expiry(self, key: OffsetKey, group: GroupBook, removed: OffsetValue, at_ms: int) -> None:
        """An offset went that no client has deleted (ClassicGroup.offsetExpirationCondition)."""
        base_ms = removed.commit_timestamp
        why = "its commit"
        value = group.value
        if value is not None and value.protocol_type:
            if not value.members:
                base_ms, why = value.current_state_timestamp, "the group became Empty"
            elif any(key.topic in serdes.topics_of(each.subscription) for each in value.members):
                raise Broken("expiry by the rules only", f"{key}: a member consumes it")
        age_ms = at_ms - base_ms
        # A jump counts for nothing before a check has confirmed it; what went there and back no check has seen.
        jump_ms = self._world.clock.jumped_within_ms(EXPIRY_INTERVAL_MS / 1000)
        if abs(jump_ms) > EXPIRY_INTERVAL_MS:
            age_ms = min(age_ms, age_ms - jump_ms)
        if age_ms < RETENTION_MS:
            raise Broken("expiry by the rules only", f"{key}: gone {age_ms} ms after {why}")
