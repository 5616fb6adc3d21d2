# SPDX-License-Identifier: Apache-2.0
"""Any life of a log, with compaction and crashes: replaying it always gives what was acknowledged.

The model is the state of keys and values after each append, by the offset at which the log ended then. Whatever
happens, the log that is found ends at one of these, not before what was promised, and holds that state: neither
compaction, nor a write cut at any byte, nor a rename that was lost changes what a reader makes of it.
"""

import random
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.newtypes import Partition
from storage.cleaner.log_cleaner import CleaningFailed, LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.errors import CorruptLog, StorageError
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.cleaning import NOW, RETENTION, build, content, replay
from tests.storage.faulty import Crash, Fault, FaultyFileSystem
from tests.storage.test_index import check

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=900, index_interval_bytes=150, journal_step_bytes=8192)
KINDS = [
    "pwrite",
    "pwrite_durable",
    "fsync",
    "fdatasync",
    "fsync_dir",
    "rename",
    "create",
    "truncate",
    "remove",
]

State = dict[bytes, bytes]
keys = st.integers(0, 5).map(lambda number: b"key %d" % number)
values = st.none() | st.integers(0, 99).map(lambda number: b"%d" % number + b"x" * (number % 60))
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=6)


class LogLife(RuleBasedStateMachine):
    """One partition, on a disk that fails when told to."""

    @initialize(seed=st.integers(0, 1 << 32))
    def open(self, seed: int) -> None:
        """An empty directory."""
        self.fs = FaultyFileSystem(ROOT, random.Random(seed))
        self.states: dict[int, State] = {0: {}}
        self.accepted = self.durable = 0
        self.now_ms = NOW
        self.cleanings = 0
        self.start()

    def start(self) -> None:
        self.manager = LogManager.open(ROOT, SETTINGS, self.fs)
        # As little as four keys, so that a round often ends in the middle.
        options = CleanerSettings(
            min_cleanable_dirty_ratio=0, delete_retention_ms=RETENTION, dedupe_buffer_bytes=1_500
        )
        self.cleaner = LogCleaner(
            self.manager, options, lambda job: write_cleaned_segments(self.fs, job), lambda: self.now_ms
        )

    def reopen(self, *, power_loss: bool) -> None:
        """Start again; a fault that is left over may strike meanwhile."""
        least = self.durable if power_loss else self.accepted
        while True:
            try:
                self.fs.restart(power_loss=power_loss)
                self.start()
                break
            except (StorageError, Crash) as error:
                if isinstance(error, CorruptLog):
                    raise  # no crash may look like damage
        assert self.manager.failed_partitions == {}, self.fs.log
        end = self.manager.end_offset(Partition(0))
        assert least <= end, self.fs.log
        self.settle(end)

    def settle(self, end: int) -> None:
        """The log ends here for good: what the model holds behind it never was."""
        assert end in self.states, self.fs.log
        self.states = {offset: state for offset, state in self.states.items() if offset <= end}
        self.accepted = self.durable = end

    @rule(some=pairs, sync=st.booleans(), codec=st.sampled_from([0, 0, 0, 3]))
    def append(self, some: list[tuple[bytes, bytes | None]], sync: bool, codec: int) -> None:
        """One batch; what fails may be found all the same, until it is repaired."""
        base_offset = self.manager.end_offset(Partition(0))
        if self.manager.append_failure is None:
            state = dict(self.states[base_offset])
            for key, value in some:
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
            self.states[base_offset + len(some)] = state
        try:
            self.manager.append(
                [Entry(Partition(0), base_offset, build(base_offset, some, attributes=codec))], sync=sync
            )
        except StorageError:
            return
        except Crash:
            self.reopen(power_loss=self.fs.rng.random() < 0.5)
            return
        self.accepted = base_offset + len(some)
        if sync:
            self.durable = self.accepted

    @rule(some=pairs, times=st.integers(5, 25))
    def append_many(self, some: list[tuple[bytes, bytes | None]], times: int) -> None:
        """Several segments full, so that there is something to clean."""
        for _ in range(times):
            self.append(some, False, 0)

    @rule(
        step=st.sampled_from(
            ["write_behind", *["checkpoint_journal"] * 2, "sync", "recover_all_after_failure"]
        )
    )
    def maintain(self, step: str) -> None:
        """What runs by the clock."""
        if step == "recover_all_after_failure" and self.manager.append_failure is None:
            return
        try:
            getattr(self.manager, step)()
        except StorageError:
            return
        except Crash:
            self.reopen(power_loss=self.fs.rng.random() < 0.5)
            return
        if step == "recover_all_after_failure":
            self.settle(self.manager.end_offset(Partition(0)))
        elif step != "write_behind":
            self.durable = self.accepted

    @rule(later_ms=st.sampled_from([0, 0, RETENTION // 2, RETENTION]))
    def compact(self, later_ms: int) -> None:
        """One round of cleaning, perhaps when tombstones have become old."""
        self.now_ms += later_ms
        try:
            self.cleanings += self.cleaner.clean_dirtiest() is not None
        except CleaningFailed:
            raise  # nothing is damaged
        except StorageError:
            return
        except Crash:
            self.reopen(power_loss=self.fs.rng.random() < 0.5)

    @rule(power_loss=st.booleans())
    def crash(self, power_loss: bool) -> None:
        """The end of the process, or of the power."""
        self.reopen(power_loss=power_loss)

    @rule(fault=st.sampled_from(list(Fault)), after=st.integers(0, 25))
    def fail_soon(self, fault: Fault, after: int) -> None:
        """An operation fails."""
        self.fs.fail(fault, after)

    @rule(fault=st.sampled_from(list(Fault)), after=st.integers(0, 5), kind=st.sampled_from(KINDS))
    def fail_at(self, fault: Fault, after: int, kind: str) -> None:
        """An operation of one kind fails."""
        self.fs.fail(fault, after, only=kind)

    @rule()
    def close(self) -> None:
        """A clean end, after which everything beside the log is as Kafka's tools want it."""
        try:
            self.manager.close()
        except (StorageError, Crash):
            self.reopen(power_loss=self.fs.rng.random() < 0.5)
            return
        assert self.fs.exists(ROOT / ".kafka_cleanshutdown")
        check(self.fs, ROOT / "__consumer_offsets-0", 150)
        self.durable = self.accepted
        self.reopen(power_loss=True)

    @precondition(lambda self: hasattr(self, "manager"))
    @invariant()
    def replaying_gives_what_was_acknowledged(self) -> None:
        """The state is that of the offset at which the log ends."""
        if self.manager.append_failure is not None:
            return
        try:
            found = replay(content(self.manager, 0))
        except CorruptLog:
            raise
        except StorageError:
            return  # the write-behind before a read met a fault
        except Crash:
            self.reopen(power_loss=self.fs.rng.random() < 0.5)
            return
        assert found == self.states[self.manager.end_offset(Partition(0))], self.fs.log

    def teardown(self) -> None:
        """In the end it opens, compacts and closes without a fault."""
        if hasattr(self, "manager"):
            self.reopen(power_loss=True)
            self.append_many([(b"key 0", b"x" * 50)], 40)
            self.manager.checkpoint_journal()
            self.compact(RETENTION)
            assert self.cleanings
            self.replaying_gives_what_was_acknowledged()
            self.close()


TestLogLife = LogLife.TestCase
TestLogLife.settings = settings(deadline=None, stateful_step_count=30)
