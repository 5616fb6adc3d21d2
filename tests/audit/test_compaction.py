# SPDX-License-Identifier: Apache-2.0
"""The state of a log is that of the log once compacted, and a compacted log is no damaged one."""

from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from audit.checks import query_findings
from audit.facts.log_facts import Facts
from audit.options import AuditOptions
from audit.report.collect import collect_findings
from audit.run.reading import read_facts
from protocol.newtypes import Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.disk.filesystem import RealFileSystem
from storage.format.records import Record
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.audit.logs import HOUR, NOW, group_in, inventory_of, make_batch, marker, member, stored
from tests.audit.logs import commit as committed

SEED = 20_261_121
PARTITION = Partition(5)


def write_log(manager: LogManager) -> None:
    """Groups that commit over and over, lose offsets, and commit in transactions that end either way."""
    random = Random(SEED)
    groups = [group_in(PARTITION, number) for number in range(4)]
    for step in range(400):
        at = NOW - 5 * HOUR + step * 10_000
        group = random.choice(groups)
        offset = None if random.random() < 0.1 else step
        records: list[Record] = [committed(group, offset, partition=random.randrange(5), at=at)]
        if step % 40 == 0:
            records.append(stored(group, 1 + step, [member("a")], at=at))
        end = manager.end_offset(PARTITION)
        producer = random.randrange(3) if random.random() < 0.2 and offset is not None else None
        manager.append([Entry(PARTITION, end, make_batch(records[:1] if producer is not None else records, end, at=at,
                                                    producer=producer))], sync=False)  # fmt: skip
        if producer is not None:
            end = manager.end_offset(PARTITION)
            kind = random.choice(["commit", "abort"])
            manager.append([Entry(PARTITION, end, marker(kind, end, producer, at=at))], sync=False)


def looked_at(spark: SparkSession, log_dir: Path) -> Facts:
    options = AuditOptions(log_dirs=(str(log_dir),), out="", as_of_ms=NOW, num_partitions=50)
    return read_facts(spark, options, inventory_of(options))


def state(facts: Facts) -> list[DataFrame]:
    """What is there, without what is only about where it is."""
    places = ("file", "last_position", "records", "tombstones", "cleaned", "backwards", "back", "rebalances")
    return [facts.live_offsets.drop(*places), facts.live_groups.drop(*places)]


def test_compaction_changes_neither_the_state_nor_the_verdict(spark: SparkSession, tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, LogSettings(segment_bytes=4_096), RealFileSystem())
    write_log(manager)
    manager.checkpoint_journal()
    before = looked_at(spark, tmp_path)
    kept = [table.localCheckpoint() for table in state(before)]
    records_before = before.ranges.groupBy().sum("records").collect()[0][0]
    settings = CleanerSettings(min_cleanable_dirty_ratio=0.01)
    cleaner = LogCleaner(
        manager, settings, lambda job: write_cleaned_segments(manager.file_system, job), lambda: NOW
    )
    assert cleaner.clean_dirtiest() is not None
    manager.close()
    after = looked_at(spark, tmp_path)
    assert after.inventory.cleaner_checkpoint[PARTITION] > 300
    assert after.ranges.groupBy().sum("records").collect()[0][0] < records_before / 2
    for expected, found in zip(kept, state(after), strict=True):
        assert expected.count() > 0
        assertDataFrameEqual(found, expected)
    graver = [one for one in collect_findings(query_findings(after)) if one.severity == "error"]
    assert graver == []
