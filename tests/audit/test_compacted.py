# SPDX-License-Identifier: Apache-2.0
"""An audit that compacts a copy of each log shows what that changes, and nothing where it changes nothing."""

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from audit.compared.compaction_comparison import find_differences_after_compaction
from audit.errors import AuditError
from audit.options import AuditOptions
from audit.run.audit import audit
from audit.run.reading import read_facts
from audit.source.compacted_copy import Clean, check_work_dir, compact_log_copy, write_partition_log_copy
from audit.source.plan import Range, plan
from protocol.newtypes import Offset, Partition
from storage.cleaner import partition_cleaning
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.partition_cleaning import CleaningJob, CleaningResult
from storage.cleaner.plan import CleanerSettings
from storage.cleaner.transactions import CleanedTransactionMetadata
from storage.disk.filesystem import FileSystem, RealFileSystem
from storage.disk.layout import CLEANED_SUFFIX, segment_name
from storage.format.batch import Batch, iter_batches, iter_records
from storage.format.records import UnknownRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.audit.damaged import flipped_bit, wrong_record_lengths
from tests.audit.logs import (
    HOUR,
    MINUTE,
    NOW,
    Log,
    commit,
    group_in,
    healthy,
    inventory_of,
    make_batch,
    member,
    stored,
)
from tests.audit.test_compaction import write_log
from tests.kafka.broker import KafkaBroker
from tests.storage.test_kafka_directory import once_ready

CHECK = "compaction_differs"
"""The check that all of this is about."""


def content(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is in a directory: by path inode, time and bytes of each file."""
    return {
        str(path.relative_to(directory)): (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


class Told(msgspec.Struct, frozen=True):
    """One difference."""

    partition: int
    file: str
    position: int | None
    message: str

    @property
    def before(self) -> str:
        """What the log says."""
        return self.message.partition(" in the log, ")[0]

    @property
    def after(self) -> str:
        """What it says once it is compacted."""
        return self.message.partition(" in the log, ")[2]


def compared(
    spark: SparkSession,
    log_dir: Path,
    scratch: Path,
    clean: Clean = partition_cleaning.write_cleaned_segments,
) -> list[Told]:
    """What differs once a copy of a log is compacted below `scratch`; the log may not change, and no copy be left."""
    scratch.mkdir(exist_ok=True)
    before = content(log_dir)
    options = AuditOptions(
        log_dirs=(str(log_dir),), out="", as_of_ms=NOW, num_partitions=50, compacted=str(scratch)
    )
    facts = read_facts(spark, options, inventory_of(options))
    try:
        rows = find_differences_after_compaction(facts, clean).orderBy("partition", "message").collect()
    finally:
        assert content(log_dir) == before
        assert list(scratch.iterdir()) == []
    assert {row["kind"] for row in rows} <= {"compacted"}
    return [Told(row["partition"], row["file"], row["position"], row["message"]) for row in rows]


@pytest.fixture
def found(spark: SparkSession, tmp_path: Path) -> Callable[..., list[Told]]:
    """`compared` for the log in the directory `log` of the test."""
    return partial(compared, spark, tmp_path / "log", tmp_path / "scratch")


# ------------------------------------------------------------------ cleaners with a fault


def drops_a_key(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
    """A cleaner that loses every batch with a record of the topic `last`."""
    result = partition_cleaning.write_cleaned_segments(file_system, job)
    for cleaned in result.segments:
        path = Path(job.directory, segment_name(cleaned.base_offsets[0], ".log" + CLEANED_SUFFIX))
        batches = [batch.data for batch in iter_batches(path.read_bytes())]
        path.write_bytes(b"".join(batch for batch in batches if b"last" not in batch))
    return result


class _KeepsTheOldest(OffsetMap):
    def put(self, key: bytes, offset: int) -> bool:
        return key in self._offsets or super().put(key, Offset(offset))

    def is_newest(self, key: bytes, offset: int) -> bool:
        return offset <= self._offsets.get(key, offset)


def keeps_the_oldest(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
    """A cleaner that keeps the first record of each key in place of the last."""
    cleaner = partition_cleaning.CleanedSegmentsWriter(file_system, job)
    cleaner.map = _KeepsTheOldest(job.dedupe_buffer_bytes)
    return cleaner.write_all()


class _AllCommitted(CleanedTransactionMetadata):
    def check_data_batch_aborted(self, batch: Batch) -> bool:
        return False


def forgets_aborts(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
    """A cleaner that takes what was aborted for a newer value."""
    cleaner = partition_cleaning.CleanedSegmentsWriter(file_system, job)
    cleaner.transactions = _AllCommitted()
    return cleaner.write_all()


# ------------------------------------------------------------------ what must be found


def test_a_lost_key_is_told_with_its_place_and_both_values(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    log = Log(tmp_path / "log", 3)
    log.add(stored(log.group, 1, [member("a")])).add(commit(log.group, 7)).add(
        commit(log.group, 8, topic="last", metadata="m" * 201)
    )
    (one,) = found(drops_a_key)
    position = [batch.position for batch in iter_batches(log.file.read_bytes())][-1]
    assert (one.partition, one.file, one.position) == (3, str(log.file), position)
    assert f"partition 3, group '{log.group}', last-0" in one.before
    assert '"committed_offset":8' in one.before
    assert f'"metadata":"{"m" * 200}... (201 characters)"' in one.before
    assert one.after == "nothing once it is compacted"


def test_an_old_value_is_told_and_what_comes_back(found: Callable[..., list[Told]], tmp_path: Path) -> None:
    overwritten = Log(tmp_path / "log", 3)
    overwritten.add(commit(overwritten.group, 7)).add(commit(overwritten.group, 8))
    deleted = Log(tmp_path / "log", 4)
    deleted.add(commit(deleted.group, 7)).add(commit(deleted.group, None))
    group = Log(tmp_path / "log", 5)
    group.add(stored(group.group, 1, [member("a")])).add(stored(group.group, 2))
    old_value, resurrected, old_group = found(keeps_the_oldest)
    assert '"committed_offset":8' in old_value.before
    assert '"committed_offset":7' in old_value.after
    assert resurrected.before.endswith(f"group '{deleted.group}', topic-0: nothing")
    assert '"committed_offset":7' in resurrected.after
    assert f"partition 5, group '{group.group}': " in old_group.before
    assert '"generation":2' in old_group.before
    assert '"generation":1' in old_group.after


def test_a_cleaner_that_forgets_aborted_transactions_is_told(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    log = Log(tmp_path / "log", 3)
    log.add(commit(log.group, 7)).add(commit(log.group, 8), producer=9).end("abort", 9)
    assert found() == []
    (one,) = found(forgets_aborts)
    assert '"committed_offset":7' in one.before
    assert one.after == "nothing once it is compacted"


def test_a_damaged_partition_is_left_out_and_the_others_are_compared(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    logs = {number: Log(tmp_path / "log", number) for number in (3, 4, 5, 6, 7)}
    flipped_bit(logs[3])
    wrong_record_lengths(logs[4])
    healthy(logs[5]).add(commit(logs[5].group, 8, topic="last"))
    healthy(logs[6]).raw(logs[6].file.read_bytes())
    cut_marker = make_batch([UnknownRecord(0, b"\0", b"")], logs[7].next_offset, producer=9, control=True)
    logs[7].raw(cut_marker)
    told = found(drops_a_key)
    assert [one.partition for one in told] == [3, 4, 5, 6, 7]
    left_out = [one for one in told if "is damaged, and so was not compacted: " in one.message]
    assert [one.partition for one in left_out] == [3, 4, 6, 7]
    assert [one.file for one in left_out[:3]] == [str(logs[number].file) for number in (3, 4, 6)]


# ------------------------------------------------------------------ what must pass


def test_overwritten_keys_tombstones_and_transactions_pass(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    manager = LogManager.open(tmp_path / "log", LogSettings(segment_bytes=4_096), RealFileSystem())
    write_log(manager)
    manager.close()
    assert found() == []


def test_tombstones_and_transactions_at_every_edge_pass(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    log = Log(tmp_path / "log", 3)
    other = group_in(3, 1)
    log.add(commit(log.group, 1), commit(other, 1)).add(stored(other, 1, [member("a")]))
    log.add(commit(log.group, 2), producer=1).add(commit(log.group, 3), at=NOW - 30 * MINUTE).roll()
    log.end("commit", 1).add(commit(log.group, None, partition=1))  # the marker comes behind a newer commit
    log.add(commit(other, None), stored(other, 2)).add(commit(log.group, 4, partition=1), producer=2).roll()
    log.end("abort", 2).add(commit(other, 5, partition=2)).roll()
    log.add(commit(log.group, 6), producer=3).roll().add(commit(log.group, 7)).end("commit", 3)
    open_one = Log(tmp_path / "log", 4)
    open_one.add(commit(open_one.group, 1)).add(commit(open_one.group, 2)).roll()
    open_one.add(commit(open_one.group, 9), producer=5, at=NOW - HOUR).roll().add(commit(open_one.group, 3))
    Log(tmp_path / "log", 5)  # nothing in it
    assert found() == []


def test_what_is_in_the_journal_only_is_compacted_too(
    found: Callable[..., list[Told]], tmp_path: Path
) -> None:
    manager = LogManager.open(tmp_path / "log", LogSettings(segment_bytes=4_096), RealFileSystem())
    write_log(manager)
    manager.checkpoint_journal()
    end = manager.end_offset(Partition(5))
    manager.append(
        [Entry(Partition(5), end, make_batch([commit(group_in(5), 8, topic="last")], end))], sync=True
    )
    try:
        segments = (tmp_path / "log" / "__consumer_offsets-5").glob("*.log")
        assert not any(b"last" in path.read_bytes() for path in segments)
        assert found() == []
        (one,) = found(drops_a_key)
    finally:
        manager.close()
    assert '"committed_offset":8' in one.before


@pytest.mark.kafka
@pytest.mark.timeout(400)
def test_what_a_broker_wrote_passes(spark: SparkSession, tmp_path: Path) -> None:
    """Commits over and over, a deleted group, and transactions that end either way."""
    broker = KafkaBroker(tmp_path / "kafka", {"offsets.topic.num.partitions": 4})
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("work", 3)])["work"].result(120)
        for group in ("again", "deleted", "in-transactions"):
            member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
            for turn in range(20):
                places = [TopicPartition("work", part, 10 * turn + part) for part in range(3)]
                once_ready(partial(member.commit, offsets=places, asynchronous=False), "a commit")
            if group == "in-transactions":
                transactions(broker.bootstrap, member)
            member.close()
        once_ready(lambda: admin.delete_consumer_groups(["deleted"])["deleted"].result(120), "the deletion")
        broker.terminate()
    finally:
        broker.close()
    counts = tmp_path / "counts"

    def counted(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
        result = partition_cleaning.write_cleaned_segments(file_system, job)
        with counts.open("a") as stream:
            stream.writelines(f"{one.records_before} {one.records_after}\n" for one in result.segments)
        return result

    assert compared(spark, broker.data_dir, tmp_path / "scratch", counted) == []
    totals = [tuple(map(int, line.split())) for line in counts.read_text().splitlines()]
    assert max(before for before, _ in totals) > 60
    assert sum(after for _, after in totals) < sum(before for before, _ in totals) / 2


def transactions(bootstrap: str, member: Consumer) -> None:
    """Offsets of a member in four transactions, every second of which is aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "of-the-test"})
    producer.init_transactions(60)
    for turn in range(4):
        producer.begin_transaction()
        places = [TopicPartition("work", part, 1_000 + 10 * turn + part) for part in range(3)]
        producer.send_offsets_to_transaction(places, member.consumer_group_metadata(), 60)
        if turn % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


# ------------------------------------------------------------------ how it goes about it


def test_one_copy_at_a_time(found: Callable[..., list[Told]], tmp_path: Path) -> None:
    for partition in range(4):
        healthy(Log(tmp_path / "log", partition))
    seen = tmp_path / "seen"

    def watched(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
        with seen.open("a") as stream:
            copies = list((tmp_path / "scratch").iterdir())
            stream.write(f"{len(copies)} {Path(job.directory).parents[1]}\n")
        return partition_cleaning.write_cleaned_segments(file_system, job)

    assert found(watched) == []
    lines = seen.read_text().splitlines()
    assert len(lines) >= 8
    assert set(lines) == {f"1 {tmp_path / 'scratch'}"}


def test_tombstones_and_what_was_aborted_are_gone_in_the_end(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 3)
    log.add(commit(log.group, 1)).add(commit(log.group, None)).add(
        commit(log.group, 2, topic="aborted"), producer=1
    )
    log.end("abort", 1).roll().add(commit(log.group, 3, topic="kept"), producer=2).end("commit", 2)
    ranges = [part for task in plan([str(tmp_path / "log")]) for part in task if isinstance(part, Range)]
    directory = tmp_path / "copy"
    directory.mkdir()
    copy = write_partition_log_copy(ranges, directory)
    assert copy is not None
    assert (copy.start, copy.end) == (0, log.next_offset)
    copied = [path.read_bytes() for path in sorted(directory.iterdir())]
    assert copied == [path.read_bytes() for path in sorted(log.directory.iterdir())]
    compact_log_copy(copy, NOW, CleanerSettings(), partition_cleaning.write_cleaned_segments)
    batches = [one for path in sorted(directory.glob("*.log")) for one in iter_batches(path.read_bytes())]
    left = [(one.base_offset, key) for one in batches for _, _, key, _ in iter_records(one)]
    assert [offset for offset, _ in left] == [3, 4, 5]  # an end of a transaction stays once more
    assert b"kept" in (left[1][1] or b"")


def test_a_disk_that_is_full_ends_the_audit(found: Callable[..., list[Told]], tmp_path: Path) -> None:
    healthy(Log(tmp_path / "log", 3))

    def full(file_system: FileSystem, job: CleaningJob) -> CleaningResult:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), job.directory)

    with pytest.raises(AuditError, match=r"partition 3 could not be compacted: .*No space left on device"):
        found(full)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_copy_must_have_a_place_and_it_is_not_in_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 3)
    for place, log_dir, says in (
        (tmp_path / "nowhere", tmp_path / "log", "there is no such directory"),
        (log.directory, tmp_path / "log", "where an audit writes nothing"),
        (tmp_path, "s3a://bucket/data", "is no local directory"),
    ):
        with pytest.raises(AuditError, match=says):
            check_work_dir(str(place), (str(log_dir),))
    check_work_dir(str(tmp_path), (str(tmp_path / "log"),))


def test_an_audit_compacts_only_when_told_to(spark: SparkSession, tmp_path: Path) -> None:
    flipped_bit(Log(tmp_path / "log", 3))
    options = AuditOptions(
        log_dirs=(str(tmp_path / "log"),), out=str(tmp_path / "out"), as_of_ms=NOW, num_partitions=50
    )
    assert {one.check for one in audit(spark, options).findings} == {"batch_crc"}
    asked = msgspec.structs.replace(options, compacted=str(tmp_path))
    found = {one.check: one for one in audit(spark, asked).findings}
    assert found.keys() == {"batch_crc", CHECK}
    assert (found[CHECK].severity, found[CHECK].partition, found[CHECK].count) == ("error", 3, 1)
