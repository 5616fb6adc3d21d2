# SPDX-License-Identifier: Apache-2.0
"""The deleted topics in which partitions may still hold offsets.

Such offsets are dropped in steps; those left when their partition is lost are dropped before it is served next.
"""

from collections.abc import Callable, Iterator
from typing import Final

from coordinator.groups.offsets import expiry_and_deletion
from coordinator.groups.outcome import Outcome
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from protocol.newtypes import Partition
from storage.errors import RecordTooLarge

log = get_logger("groups")

GROUPS_PER_STEP: Final = 1_000
TOMBSTONES_PER_STEP: Final = 50
"""The groups checked, and the tombstones appended, before other work gets a turn: each some 500 microseconds."""


class DeletedTopics:
    """The partitions that may hold offsets in deleted topics, and the steps that drop the offsets."""

    def __init__(self, run: Callable[[GroupEntry, Outcome], None], stats: Stats) -> None:
        """`run` carries out a decision; it raises RecordTooLarge."""
        self._run = run
        self._stats = stats
        # topics in which a partition may still hold offsets, to be dropped before it is served, or being dropped now
        self._left: dict[Partition, list[frozenset[str]]] = {}
        # topics whose offsets were dropped, and the tickets of the tombstones
        self._dropped: list[tuple[DurabilityTicket, frozenset[str]]] = []

    def note(self, partition: Partition, topics: frozenset[str]) -> None:
        """Note deleted topics in which a partition may hold offsets; they are dropped before it is served next."""
        if topics:  # one set for all partitions: a union would take as long as the sets are large
            self._left.setdefault(partition, []).append(topics)

    def requeue_lost_drops(self, partition: Partition) -> None:
        """Note again the topics of tombstones that were lost; all appends to the partition must have ended."""
        mine = [(ticket, names) for ticket, names in self._dropped if ticket.partition == partition]
        self._dropped = [each for each in self._dropped if each not in mine]
        lost = frozenset().union(*(names for ticket, names in mine if not ticket.is_durable))
        self.note(partition, lost)

    def forget_partition(self, partition: Partition) -> None:
        """Forget a partition that is given away: its next leader drops its offsets in deleted topics."""
        self._left.pop(partition, None)
        self._dropped = [each for each in self._dropped if each[0].partition != partition]

    def forget_undropped_topics(self, partition: Partition) -> None:
        """Forget a partition's deleted topics, so that its remaining offsets in them stay."""
        self._left.pop(partition, None)

    def has_undropped_offsets(self, partition: Partition) -> bool:
        """Return whether a partition may hold offsets in deleted topics."""
        return partition in self._left

    @property
    def undropped_partitions(self) -> set[Partition]:
        """The partitions that may hold offsets in deleted topics, or would after a crash."""
        return {ticket.partition for ticket, _ in self._dropped if not ticket.is_durable} | set(self._left)

    def find_undurable_ticket(self, partition: Partition) -> DurabilityTicket | None:
        """Return the ticket of tombstones in a partition that are not durable, if any."""
        for ticket, _ in self._dropped:
            if ticket.partition == partition and not ticket.is_durable:
                return ticket
        return None

    def find_pending_tickets(self) -> Iterator[DurabilityTicket]:
        """Yield the tickets of tombstones that are not durable yet."""
        for ticket, _ in list(self._dropped):
            if ticket.is_pending:
                yield ticket

    def drop_offsets_in_steps(self, shard: Shard) -> Iterator[None]:
        """Delete a partition's offsets in deleted topics, in steps."""
        partition = shard.partition
        while undropped := self._left.get(partition):
            yield from self._drop_topics(shard, undropped[0])
            if shard.is_lost:
                return
            del undropped[0]
            if not undropped:
                self._left.pop(partition, None)

    def _drop_topics(self, shard: Shard, topics: frozenset[str]) -> Iterator[None]:
        for number, kept in enumerate(list(shard.groups.values())):
            if number % GROUPS_PER_STEP == GROUPS_PER_STEP - 1:
                yield
            dropped = expiry_and_deletion.plan_topic_offsets_deletion(
                kept.group, kept.offsets, topics, TOMBSTONES_PER_STEP
            )
            for outcome in dropped:
                if shard.is_lost:
                    return  # since the last step
                if shard.groups.get(kept.group_id) is not kept:
                    break  # removed since the last step, with its offsets; one of its name now is newer
                try:
                    self._run(kept, outcome)
                except RecordTooLarge as error:
                    log.error(
                        "offsets of deleted topics were not removed", group=kept.group_id, reason=str(error)
                    )
                    break
                self._note_dropped(kept.ticket, topics)
                self._stats.offset_deletions += len(outcome.records)
                yield

    def _note_dropped(self, ticket: DurabilityTicket, topics: frozenset[str]) -> None:
        if self._dropped[-1:] != [(ticket, topics)]:
            self._dropped = [each for each in self._dropped if not each[0].is_durable]
            self._dropped.append((ticket, topics))
