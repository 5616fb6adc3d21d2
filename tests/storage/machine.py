# SPDX-License-Identifier: Apache-2.0
"""A LogManager on a faulty disk, and beside it a simple account of what must be found there.

For each partition: the batches that were accepted, in order, and how many of them must survive a power
loss. A batch whose append failed is in doubt until `repair`, or until a restart shows what became of it;
once its offsets can be used again, it must never be seen.
"""

import random
from collections.abc import Iterable
from pathlib import Path

from storage.batch import iter_batches, iter_records
from storage.errors import CorruptLog, StorageError
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.faulty import Crash, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=700, journal_step_bytes=8192)


class Machine:
    """Drives a LogManager through steps that may fail at any moment."""

    def __init__(self, seed: int = 0, settings: LogSettings = SETTINGS) -> None:
        self.fs = FaultyFileSystem(ROOT, random.Random(seed))
        self.settings = settings
        self.label = 0
        self.accepted: dict[int, list[bytes]] = {}
        self.durable: dict[int, int] = {}
        self.doubtful: dict[int, list[bytes]] = {}
        self.manager = LogManager.open(ROOT, settings, self.fs)

    # -------------------------------------------------------------- steps

    def append(self, partitions: Iterable[int], *, sync: bool, count: int = 1) -> None:
        """One flush; an error of the disk is noted and swallowed, a crash goes on."""
        self.label += 1
        entries = []
        for partition in partitions:
            base_offset = self.manager.end_offset(partition)
            entries.append((partition, base_offset, batch(self.label, base_offset, count)))
        if self.manager.failed is None:
            self.doubtful = {partition: [data] for partition, _, data in entries}
        try:
            self.manager.append(entries, sync=sync)
        except StorageError:
            assert self.manager.failed is not None
            return
        for partition, batches in self.doubtful.items():
            self.accepted.setdefault(partition, []).extend(batches)
            if sync:
                self.durable[partition] = len(self.accepted[partition])
        self.doubtful = {}

    def attempt(self, step: str, *arguments: int) -> bool:
        """`write_behind`, `checkpoint`, `sync` or `repair`; True when it did what it promises."""
        try:
            getattr(self.manager, step)(*arguments)
        except StorageError:
            return False
        if step == "repair":
            self.doubtful = {}
        if step != "write_behind":
            self.durable = {partition: len(batches) for partition, batches in self.accepted.items()}
        return True

    def read(self) -> None:
        """Everything accepted can be read, whether it is in its segment yet or not."""
        if self.manager.failed is not None:
            return
        try:
            found = {partition: self.content(partition) for partition in self.accepted}
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

    def content(self, partition: int) -> list[bytes]:
        """All batches of a partition, as the manager reads them."""
        found: list[bytes] = []
        offset, end = 0, self.manager.end_offset(partition)
        while offset < end:
            data, following = self.manager.read(partition, offset, 300)
            assert data
            assert following > offset
            offset = following
            found += (one.data for one in iter_batches(data, check=True))
        return found

    def compare(self, *, power_loss: bool) -> None:
        """What is there now begins as accepted, holds at least what must be there, and has no gaps."""
        partitions = set(self.accepted) | set(self.doubtful) | set(self.manager.partitions_on_disk())
        for partition in sorted(partitions):
            found = self.content(partition)
            accepted = self.accepted.get(partition, [])
            possible = accepted + self.doubtful.get(partition, [])
            least = self.durable.get(partition, 0) if power_loss else len(accepted)
            where = f"partition {partition}, {self.fs.log}"
            assert found == possible[: len(found)], f"not what was accepted: {where}"
            assert len(found) >= least, f"{len(found)} batches of {least}: {where}"
            offsets = [offset for one in found for offset, *_ in iter_records(one)]
            assert offsets == list(range(self.manager.end_offset(partition))), where
            self.accepted[partition] = found
        self.doubtful = {}
        self.durable = {partition: len(batches) for partition, batches in self.accepted.items()}

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
