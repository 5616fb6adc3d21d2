# SPDX-License-Identifier: Apache-2.0
"""The log in memory under test."""

from coordinator.logs.group_log import GroupLog, LogTimedOut, LogUnavailable
from protocol.newtypes import Partition
from tests.log_contract.subject import BATCH_BYTES_MAX, Subject
from tests.partitions.running import eventually
from tests.support.memory_log import MemoryLog, MemoryTopic


class MemorySubject(Subject):
    """A topic in memory, and its nodes."""

    fails_apart = True

    def __init__(self, *, assigns_epochs: bool = False) -> None:
        self.assigns_epochs = assigns_epochs
        self._topic = MemoryTopic(assigns_epochs=assigns_epochs)
        self._nodes: list[MemoryLog] = []
        super().__init__()

    @property
    def _node(self) -> MemoryLog:
        return self._nodes[-1]

    def open(self) -> GroupLog:
        """A node of the topic."""
        self._nodes.append(MemoryLog(self._topic, batch_bytes_max=BATCH_BYTES_MAX))
        return self._node

    async def successor(self, *partitions: Partition) -> GroupLog:
        """A second node beside the first."""
        return self.watched(self.open())

    def hold(self, partition: Partition) -> None:
        """Answer no append."""
        self._node.hold(partition)

    async def until_held(self, partition: Partition) -> None:
        """Wait for an append without an answer."""
        await eventually(lambda: self._node.is_under_way(partition), "an append to be under way")

    def let_go(self, partition: Partition) -> None:
        """Answer."""
        self._node.let_go(partition)

    def fail_next(self, partition: Partition, *, kept: bool) -> None:
        """Refuse one append."""
        self._node.fail(partition, LogUnavailable("refused", {"partition": partition}), kept=kept)

    def time_out_next(self, partition: Partition, *, kept: bool) -> bool:
        """Confirm one append too late."""
        self._node.fail(partition, LogTimedOut("not confirmed", {"partition": partition}), kept=kept)
        return True

    def break_down(self, partition: Partition) -> None:
        """Refuse everything."""
        self._node.fail(partition, LogUnavailable("refused", {"partition": partition}), broken=True)

    def mend(self, partition: Partition) -> None:
        """Refuse nothing any more."""
        self._node.mend(partition)

    async def plant(self, partition: Partition, batch: bytes) -> None:
        """Append to the topic."""
        assert self._topic.end_offset(partition) == int.from_bytes(batch[:8], "big")
        self._topic.batches[partition].append(batch)

    def damage(self, partition: Partition) -> None:
        """Change a byte of the first batch."""
        batches = self._topic.batches[partition]
        batches[0] = batches[0][:-3] + bytes([batches[0][-3] ^ 0xFF]) + batches[0][-2:]

    async def restart(self) -> GroupLog:
        """A new node after the first."""
        await self._node.close()
        self.log = self.watched(self.open())
        return self.log
