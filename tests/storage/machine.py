# SPDX-License-Identifier: Apache-2.0
"""A LogManager on a faulty disk, and beside it a simple account of what must be found there.

For each partition: the batches that were accepted, in order, and how many of them must survive a power
loss. A batch whose append failed is in doubt until `repair`, or until a restart shows what became of it;
once its offsets can be used again, it must never be seen.
"""

import random
from collections.abc import Iterable
from pathlib import Path

from protocol.newtypes import Partition
from storage.errors import CorruptLog, StorageError
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.recovery import partitions_on_disk
from storage.settings import LogSettings
from tests.storage.account import Account, contents
from tests.storage.faulty import Crash, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=700, journal_step_bytes=8192)


class Machine(Account):
    """Drives a LogManager through steps that may fail at any moment."""

    def __init__(self, seed: int = 0, settings: LogSettings = SETTINGS) -> None:
        super().__init__(FaultyFileSystem(ROOT, random.Random(seed)), seed)
        self.settings = settings
        self.manager = LogManager.open(ROOT, settings, self.fs)

    # -------------------------------------------------------------- steps

    def append(self, partitions: Iterable[int], *, sync: bool, count: int = 1) -> None:
        """One flush; an error of the disk is noted and swallowed, a crash goes on."""
        self.label += 1
        entries = []
        for partition in map(Partition, partitions):
            base_offset = self.manager.end_offset(partition)
            entries.append(Entry(partition, base_offset, batch(self.label, base_offset, count)))
        if self.manager.append_failure is None:
            self.doubtful = {entry.partition: [entry.batch] for entry in entries}
        try:
            self.manager.append(entries, sync=sync)
        except StorageError:
            assert self.manager.append_failure is not None
            return
        for written, batches in self.doubtful.items():
            self.accepted.setdefault(written, []).extend(batches)
            if sync:
                self.durable[written] = len(self.accepted[written])
        self.doubtful = {}

    def attempt(self, step: str, *arguments: int) -> bool:
        """`write_behind`, `checkpoint`, `sync` or `repair`; True when it did what it promises."""
        try:
            getattr(self.manager, step)(*arguments)
        except StorageError:
            return False
        if step == "recover_all_after_failure":
            self.doubtful = {}
        if step != "write_behind":
            self.durable = {partition: len(batches) for partition, batches in self.accepted.items()}
        return True

    def read(self) -> None:
        """Everything accepted can be read, whether it is in its segment yet or not."""
        if self.manager.append_failure is not None:
            return
        try:
            found = {partition: contents(self.manager, partition) for partition in self.accepted}
        except StorageError:
            return  # the write-behind that comes before a read met a fault
        assert found == self.accepted

    def reopen(self, *, power_loss: bool) -> None:
        """After a crash, or as one: start again, and compare with what must be there."""
        self.fs.restart(power_loss=power_loss)
        self.manager = LogManager.open(ROOT, self.settings, self.fs)
        assert self.manager.failed_partitions == {}, (self.manager.failed_partitions, self.fs.log)
        self.compare(power_loss=power_loss)

    def close(self) -> bool:
        """Close and open again; True when closing worked."""
        try:
            self.manager.close()
        except StorageError:
            self.reopen(power_loss=False)
            return False
        assert self.fs.exists(ROOT / ".kafka_cleanshutdown")
        assert not self.fs.exists(ROOT / "journal")
        self.doubtful = {}
        self.reopen(power_loss=True)
        return True

    # -------------------------------------------------------------- account

    def compare(self, *, power_loss: bool) -> None:
        """What is there now begins as accepted, holds at least what must be there, and has no gaps."""
        on_disk = partitions_on_disk(self.fs, ROOT, self.settings.topic)
        for partition in sorted({*self.accepted, *self.doubtful, *on_disk}):
            self.settle(self.manager, partition, power_loss=power_loss)

    def open_despite_faults(self, *, power_loss: bool) -> None:
        """`reopen`, where a fault may be left over that strikes while recovering."""
        while True:
            try:
                self.reopen(power_loss=power_loss)
                return
            except (StorageError, Crash) as error:
                if isinstance(error, CorruptLog):
                    raise  # no crash may look like damage
                # What the failed recovery left is once more what a crash left.
                continue
