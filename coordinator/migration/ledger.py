# SPDX-License-Identifier: Apache-2.0
"""The ledger of a partition: which of its groups were taken over from the Kafka cluster behind a gateway.

A mark must outlive its group: a group that is deleted, or expires, must not be taken over a second time, with the
old offsets that the cluster still has. So a mark is a record of its own, an offset of a group that no client can have:
for the group "g" the offset of partition 0 of the "topic" g, in the group `__groupkeeper.adopted-<n>`, where n is the
least number with which that name belongs to the partition. Kafka's tools read it, compaction keeps it, and it moves
with its partition. The number of the offset is the mark.

One offset of the ledger's group is no mark: the offset of the "topic" with the group's own name counts how often a
mark was taken away. A reading of the cluster from before that removal may be older than commits made here meanwhile,
so a reading is stored only if the count is still the one that was returned before the reading.

Besides the marks, the ledger has what is only true for a moment, in memory. Pure: it makes records and takes those that
were appended; it knows no log and no clock.
"""

from collections.abc import Container, Iterable
from functools import lru_cache
from itertools import islice
from typing import Final

from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.migration.model import Location, Mark
from coordinator.tickets import DURABLE, DurabilityTicket
from protocol.newtypes import LEDGER_PREFIX, GroupId, Offset, Partition
from protocol.placement import partition_for
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord

CONFIRMED_ABSENT_MAX: Final = 1_000
"""The maximum number of confirmed absent groups that are remembered, not counting those that have begun since."""
OURS: Final = (Mark.ADOPTED, Mark.BEGUN)


class MigrationLedger:
    """The marks of a partition's groups, and which of them are closed, being moved, or confirmed absent now."""

    __slots__ = (
        "closed",
        "confirmed_absent",
        "group_id",
        "groups",
        "marks",
        "migrating",
        "readings_from_ms",
        "ticket",
    )

    def __init__(self, group_id: GroupId, usage: GroupTotals, groups: Container[GroupId]) -> None:
        """Begin without marks; those to come are counted in `usage`.

        `group_id` is the name under which the marks are stored, and `groups` are the partition's groups in memory.
        """
        self.group_id = group_id
        self.groups = groups
        self.marks = CommittedOffsets(usage)
        """The marks in the form in which they are stored: as offsets of a group."""
        self.ticket: DurabilityTicket = DURABLE
        """The ticket of the newest record of this ledger."""
        self.migrating: set[GroupId] = set()
        """The groups that are being taken over or given back now."""
        self.closed: dict[GroupId, int] = {}
        """The groups that are about to be given back, with the millisecond until which clients cannot change them."""
        self.confirmed_absent: dict[GroupId, int] = {}
        """Groups that neither this partition nor the cluster has, with the millisecond until which that counts; such
        groups may begin, and get their mark with their first record."""
        self.readings_from_ms = 0
        """The millisecond from which on readings of the cluster count: an earlier reading may name topics that were
        deleted since, and whose offsets were dropped here, or by the partition's last leader."""

    def get_mark(self, group_id: GroupId) -> int | None:
        """Return the mark of a group; None if it has none."""
        mark = self.marks.get_topic_offsets(group_id).get(0)
        return None if mark is None else mark.offset

    def is_ours(self, group_id: GroupId) -> bool:
        """Return whether a group was taken over, or began here."""
        return self.get_mark(group_id) in OURS

    def locate(self, group_id: GroupId, now_ms: int) -> Location:
        """Return where a group that is not in memory is served: only HERE and NOWHERE may it be created here."""
        mark = self.get_mark(group_id)
        if mark in OURS:
            return Location.HERE
        if mark is None and self.is_confirmed_absent(group_id, now_ms):
            return Location.NOWHERE
        is_moving = mark is not None or group_id in self.migrating
        return Location.MIGRATING if is_moving else Location.AT_CLUSTER

    # --- groups that are confirmed absent, or closed: in memory only ---

    def is_confirmed_absent(self, group_id: GroupId, now_ms: int) -> bool:
        """Return whether a group was neither here nor at the cluster a moment ago."""
        return self.confirmed_absent.get(group_id, now_ms) > now_ms

    def note_confirmed_absent(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """Note a group that neither this partition nor the cluster has, and forget some whose time is over."""
        self.confirmed_absent.pop(group_id, None)
        self.confirmed_absent[group_id] = until_ms
        for oldest in list(islice(self.confirmed_absent, 2)):
            if oldest in self.groups:  # its first record is still to come
                self.confirmed_absent[oldest] = self.confirmed_absent.pop(oldest)
            elif self.confirmed_absent[oldest] <= now_ms or len(self.confirmed_absent) > CONFIRMED_ABSENT_MAX:
                del self.confirmed_absent[oldest]

    def close_group(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """Keep clients from changing a group until `until_ms`; forget closed groups whose time is over."""
        self.closed = {each: until for each, until in self.closed.items() if until > now_ms}
        self.closed[group_id] = until_ms

    def is_closed(self, group_id: GroupId, now_ms: int) -> bool:
        """Return whether clients are kept from changing a group."""
        return self.closed.get(group_id, now_ms) > now_ms

    # --- marks: records that others append ---

    @property
    def removal_count(self) -> int:
        """The number of times that a mark was taken away."""
        count = self.marks.get_topic_offsets(self.group_id).get(0)
        return 0 if count is None else count.offset

    def make_mark(self, group_id: GroupId, mark: int | None, now_wall_ms: int) -> OffsetCommitRecord:
        """Return the record that sets the mark of a group, or takes it away if `mark` is None."""
        value = None if mark is None else OffsetAndMetadata(Offset(mark), -1, "", now_wall_ms, None)
        return OffsetCommitRecord(self.group_id, group_id, 0, value)

    def make_removal_count(self, now_wall_ms: int) -> OffsetCommitRecord:
        """Return the record that is appended along with a removal of marks, and counts it."""
        return self.make_mark(self.group_id, self.removal_count + 1, now_wall_ms)

    def make_first_mark(self, group_id: GroupId, now_wall_ms: int) -> OffsetCommitRecord | None:
        """Return the mark of a confirmed absent group that gets its first record now; None for other groups."""
        is_first = group_id in self.confirmed_absent
        return self.make_mark(group_id, Mark.BEGUN, now_wall_ms) if is_first else None

    def renew_mark(self, group_id: GroupId, now_wall_ms: int) -> OffsetCommitRecord | None:
        """Return the mark that lets the retention of a removed group begin now; None if its mark never expires."""
        is_begun = self.get_mark(group_id) == Mark.BEGUN
        return self.make_mark(group_id, Mark.BEGUN, now_wall_ms) if is_begun else None

    def find_expired(self, groups: Iterable[GroupId], until_wall_ms: int) -> list[GroupId]:
        """Return those of `groups` that began here, are gone, and whose marks are not newer than `until_wall_ms`.

        The cluster did not have such a group. If it has one by now, the group comes from a client that stayed at the
        cluster, and is younger than the one here was, or the cluster would have expired it (if it keeps offsets no
        longer than we do, `offsets.retention.minutes`). Marks of groups that came from the cluster stay; they are no
        more than the cluster had groups.
        """
        return [group_id for group_id in groups if self._is_expired(group_id, until_wall_ms)]

    def _is_expired(self, group_id: GroupId, until_wall_ms: int) -> bool:
        mark = self.marks.get_topic_offsets(group_id).get(0)
        if mark is None or self.get_mark(group_id) != Mark.BEGUN or mark.commit_timestamp > until_wall_ms:
            return False
        return group_id not in self.groups and group_id not in self.migrating and group_id != self.group_id

    def apply(self, record: OffsetCommitRecord) -> None:
        """Apply a record of this ledger. A group that gets its first mark is confirmed absent no more."""
        self.marks.apply_offset(record.topic, record.partition, record.value)
        if self.confirmed_absent and record.value is not None:
            self.confirmed_absent.pop(GroupId(record.topic), None)

    def forget(self) -> None:
        """Forget everything, as the partition is lost."""
        self.marks.subtract_from_totals()
        self.confirmed_absent.clear()


def is_ledger(group_id: GroupId) -> bool:
    """Return whether a group id is the name of a ledger, which clients cannot use."""
    return group_id.startswith(LEDGER_PREFIX)


def ledger_group_id(partition: Partition, num_partitions: int) -> GroupId:
    """Return the name under which the marks of a partition are stored."""
    return _names(num_partitions).of(partition)


class _Names:
    """The names of all ledgers, computed on demand."""

    def __init__(self, num_partitions: int) -> None:
        self._num_partitions = num_partitions
        self._tried = 0
        self._found: dict[Partition, GroupId] = {}

    def of(self, partition: Partition) -> GroupId:
        assert 0 <= partition < self._num_partitions, f"partition {partition} of {self._num_partitions}"
        while partition not in self._found:
            name = GroupId(f"{LEDGER_PREFIX}{self._tried}")
            self._tried += 1
            self._found.setdefault(partition_for(name, self._num_partitions), name)
        return self._found[partition]


@lru_cache(maxsize=4)
def _names(num_partitions: int) -> _Names:
    return _Names(num_partitions)
