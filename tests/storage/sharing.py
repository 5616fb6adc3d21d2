# SPDX-License-Identifier: Apache-2.0
"""Several nodes on one faulty disk, each with a share of the partitions, and an account of what must be found.

As in `machine`, for each partition: what was accepted, in order, how much of it must survive a power loss, and
what is in doubt. Whoever adopts a partition must find all of it that was accepted.
"""

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import pytest

from protocol.newtypes import Offset, Partition
from storage.errors import CorruptLog, LogNotWritable, NotOwned, StorageError
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.storage.account import Account
from tests.storage.faulty import Crash, FaultyFileSystem
from tests.storage.machine import ROOT, SETTINGS
from tests.storage.strategies import batch

T = TypeVar("T")

PARTITIONS = 5


class SharingMachine(Account):
    """Drives the nodes of a shared directory through steps that may fail at any moment."""

    def __init__(self, seed: int, nodes: int = 2) -> None:
        """Start that many nodes, or, for 1, a single one that needs no sharing."""
        super().__init__(FaultyFileSystem(ROOT, random.Random(seed)), seed)
        self.shared: SharedDirectoryFiles | None = None
        self.managers: dict[int, LogManager] = {}
        self.owners: dict[int, int] = {}
        self.start(nodes)

    def start(self, nodes: int) -> None:
        """Start the nodes in a directory without any, and compare."""
        self.shared, self.managers, self.owners = None, {}, {}
        if nodes == 1:
            self.managers[1] = LogManager.open(ROOT, SETTINGS, self.fs)
            self.owners = dict.fromkeys(range(PARTITIONS), 1)
            assert self.managers[1].failed_partitions == {}, self.fs.log
            return
        self.shared, settled = SharedDirectoryFiles.open(ROOT, SETTINGS, self.fs)
        assert settled.failed == {}, (settled, self.fs.log)
        for node in range(1, nodes + 1):
            self._start_node(node)
        for partition in range(PARTITIONS):
            self._adopt(partition, self.rng.choice(list(self.managers)))

    def _start_node(self, node: int) -> None:
        assert self.shared is not None
        self.managers[node] = LogManager.open_in_shared_directory(
            ROOT, SETTINGS, self.shared.topic_id, node, self.fs
        )

    def _adopt(self, partition: int, node: int) -> None:
        assert self.shared is not None
        self.managers[node].adopt(
            Partition(partition), *self.shared.get_partition_recovery_point(Partition(partition))
        )
        self.owners[partition] = node

    # -------------------------------------------------------------- steps

    def append(self, partitions: Iterable[int], *, sync: bool, count: int = 1) -> None:
        """One flush of each owner."""
        by_node: dict[int, list[int]] = {}
        for partition in partitions:
            by_node.setdefault(self.owners[partition], []).append(partition)
        for node, owned in by_node.items():
            self._append(self.managers[node], owned, sync=sync, count=count)

    def _append(self, manager: LogManager, partitions: list[int], *, sync: bool, count: int) -> None:
        self.label += 1
        ends = [(partition, manager.end_offset(partition)) for partition in map(Partition, partitions)]
        entries = [Entry(partition, end, batch(self.label, end, count)) for partition, end in ends]
        failed_before = manager.append_failure is not None
        if not failed_before:
            self.doubtful |= {entry.partition: [entry.batch] for entry in entries}
        try:
            manager.append(entries, sync=sync)
        except StorageError:
            assert manager.append_failure is not None
            return
        for entry in entries:
            partition = entry.partition
            self.accepted.setdefault(partition, []).append(entry.batch)
            if sync:
                self.durable[partition] = len(self.accepted[partition])
            del self.doubtful[partition]

    def attempt(self, node: int, step: str) -> bool:
        """`write_behind`, `checkpoint`, `sync` or `repair` at a node; True when it did what it promises."""
        owned = [partition for partition, owner in self.owners.items() if owner == node]
        try:
            getattr(self.managers[node], step)()
        except StorageError:
            return False
        for partition in owned:
            if step == "recover_all_after_failure":
                self.doubtful.pop(partition, None)
            if step != "write_behind":
                self.durable[partition] = len(self.accepted.get(partition, ()))
        return True

    def existing(self, node: int) -> int:
        """Choose a node by any number."""
        nodes = sorted(self.managers)
        return nodes[node % len(nodes)]

    def move(self, partition: int, to: int) -> None:
        """Hand a partition over; a node that cannot let it go keeps it."""
        if self.shared is None:
            return
        former, to = self.owners[partition], self.existing(to)
        manager = self.managers[former]
        if manager.append_failure is not None:
            return
        try:
            position = manager.release(Partition(partition))
        except StorageError:
            return
        self.durable[partition] = len(self.accepted.get(partition, ()))
        self._insist(lambda shared: shared.save_release_position(Partition(partition), position))
        self._insist(lambda _: self._adopt(partition, to))
        if to != former:
            self.expect_not_owned(former, partition)
        self.compare([partition], power_loss=False)

    def expect_not_owned(self, node: int, partition: int) -> None:
        """A former owner can append nothing."""
        before = self.fs.operations
        with pytest.raises(LogNotWritable if self.managers[node].append_failure is not None else NotOwned):
            self.managers[node].append([Entry(Partition(partition), Offset(0), batch(0, 0))], sync=True)
        assert self.fs.operations == before

    def kill(self, node: int) -> None:
        """SIGKILL of one node; its partitions go to any others, or back to its replacement."""
        if self.shared is None:
            self.restart(2, power_loss=False)
            return
        node = self.existing(node)
        owned = sorted(partition for partition, owner in self.owners.items() if owner == node)
        del self.managers[node]
        settled = self._insist(
            lambda shared: shared.replay_and_remove_node_journal(node, [*map(Partition, owned)])
        )
        assert settled.failed == {}, (settled, self.fs.log)
        self._insist(lambda _: self._start_node(node))
        for partition in owned:
            self._insist(partial(self._adopt_anywhere, partition))
        self.compare(owned, power_loss=False)

    def _adopt_anywhere(self, partition: int, _shared: SharedDirectoryFiles) -> None:
        self._adopt(partition, self.rng.choice(sorted(self.managers)))

    def _insist(self, step: Callable[[SharedDirectoryFiles], T]) -> T:
        """Do what a fault, which strikes once, must not keep us from; a failed node is repaired first."""
        assert self.shared is not None
        while True:
            for node, manager in self.managers.items():
                if manager.append_failure is not None:
                    self.attempt(node, "recover_all_after_failure")
            try:
                return step(self.shared)
            except CorruptLog:
                raise  # no crash may look like damage
            except StorageError:
                continue

    def restart(self, nodes: int, *, power_loss: bool) -> None:
        """Everything stops as in a crash, and this many nodes start, through whatever fault is left over."""
        self.fs.restart(power_loss=power_loss)
        while True:
            try:
                self.start(nodes)
                self.compare(range(PARTITIONS), power_loss=power_loss)
                return
            except (StorageError, Crash) as error:
                if isinstance(error, CorruptLog):
                    raise  # no crash may look like damage
                self.fs.restart(power_loss=power_loss)

    def stop(self, nodes: int) -> bool:
        """A clean stop, and a start of `nodes` nodes after a power loss; False when stopping failed."""
        try:
            self._stop()
        except StorageError:
            self.restart(nodes, power_loss=False)
            return False
        assert self.fs.exists(ROOT / ".kafka_cleanshutdown")
        assert not [name for name in self.fs.listdir(ROOT) if name.startswith("journal")]
        self.doubtful = {}
        self.durable = {partition: len(batches) for partition, batches in self.accepted.items()}
        self.restart(nodes, power_loss=True)
        return True

    def _stop(self) -> None:
        if self.shared is None:
            self.managers[1].close()
            return
        for partition, node in self.owners.items():
            self.shared.save_release_position(
                Partition(partition), self.managers[node].release(Partition(partition))
            )
        for node, manager in self.managers.items():
            manager.close()
            self.shared.replay_and_remove_node_journal(node, ())
        self.shared.close(clean=True)

    # -------------------------------------------------------------- account

    def compare(self, partitions: Iterable[int], *, power_loss: bool) -> None:
        """What is there now begins as accepted, holds at least what must be there, and has no gaps."""
        for partition in partitions:
            manager = self.managers[self.owners[partition]]
            if manager.append_failure is None:
                self.settle(manager, partition, power_loss=power_loss)
