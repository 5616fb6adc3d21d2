# SPDX-License-Identifier: Apache-2.0
"""What Spark reads of a log, whole and by columns, from directories and URLs."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from audit.errors import AuditError
from audit.schema import SCHEMA, arrow_schema
from audit.source import fold_log_dirs
from audit.source.folding import FoldDefinition
from audit.source.remote import FILE_BYTES_MAX
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.format.batch import BatchBuilder
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, OffsetCommitRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

NOW = 1_700_000_000_000


def records(spark: SparkSession, log_dirs: Sequence[str], columns: Sequence[str] = SCHEMA.names) -> DataFrame:
    """The rows themselves, which is what a fold makes that changes nothing."""
    schema = arrow_schema(StructType([SCHEMA[name] for name in columns]))
    return fold_log_dirs(
        spark, log_dirs, FoldDefinition(columns, schema, lambda rows, _: (row.cast(schema) for row in rows))
    )


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log of two partitions: three batches in 0, one in 7."""
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for number, partition in enumerate([0, 0, 7, 0]):
        builder = BatchBuilder()
        value = OffsetAndMetadata(Offset(number), -1, "text", NOW + number)
        builder.append_in_one_batch(
            [
                OffsetCommitRecord(GroupId("group"), "topic", 3, value),
                GroupMetadataRecord(GroupId("group"), None),
            ]
        )
        end = manager.end_offset(Partition(partition))
        manager.append(
            [Entry(Partition(partition), end, builder.build(end, LeaderEpoch(5), NOW)[0])], sync=True
        )
    manager.close()
    return tmp_path


def test_a_log_becomes_rows(spark: SparkSession, log_dir: Path) -> None:
    found = records(spark, [str(log_dir)])
    assert found.schema == SCHEMA
    rows = found.orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [(0, n) for n in range(6)] + [(7, 0), (7, 1)]
    assert [row.committed_offset for row in rows] == [0, None, 1, None, 3, None, 2, None]
    first = rows[0].asDict()
    assert first["file"] == str(log_dir / "__consumer_offsets-0" / f"{0:020d}.log")
    assert {name: first[name] for name in ("group", "topic", "topic_partition", "metadata", "crc_ok")} == {
        "group": "group",
        "topic": "topic",
        "topic_partition": 3,
        "metadata": "text",
        "crc_ok": True,
    }
    assert (rows[1].key_type, rows[1].tombstone) == ("group_metadata", True)


def test_only_the_columns_that_are_asked_for(spark: SparkSession, log_dir: Path) -> None:
    rows = records(spark, [str(log_dir)], ["committed_offset", "partition"]).where("partition = 7").collect()
    assert [row.asDict() for row in rows] == [
        {"committed_offset": 2, "partition": 7},
        {"committed_offset": None, "partition": 7},
    ]


def test_a_directory_without_a_log(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"no directory __consumer_offsets-<partition> is in it"):
        records(spark, [str(tmp_path)])


def test_a_file_system_that_only_spark_can_read(spark: SparkSession, log_dir: Path) -> None:
    local = records(spark, [str(log_dir)]).drop("file")
    remote = records(spark, [f"file:{log_dir}"])
    assert {row.file for row in remote.select("file").distinct().collect()} == {
        f"file:{log_dir}/__consumer_offsets-{partition}/{0:020d}.log" for partition in (0, 7)
    }
    assertDataFrameEqual(remote.drop("file"), local)


def test_the_journals_of_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    node, copy = tmp_path / "node", tmp_path / "copy"
    manager = LogManager.open(node, LogSettings(), RealFileSystem())
    for label in range(4):
        ends = [(partition, manager.end_offset(partition)) for partition in map(Partition, (3, 4))]
        manager.append([Entry(partition, end, batch(label, end, 2)) for partition, end in ends], sync=True)
        if label == 1:
            manager.write_behind(1 << 20)
    shutil.copytree(node, copy)
    manager.close()
    local = records(spark, [str(copy)]).drop("file")
    remote = records(spark, [copy.as_uri()])
    assert remote.count() == 16
    assertDataFrameEqual(remote.drop("file"), local)


def test_both_kinds_of_directories_at_once(spark: SparkSession, log_dir: Path) -> None:
    assert records(spark, [str(log_dir), f"file:{log_dir}/__consumer_offsets-7"], ["offset"]).count() == 10


def test_a_url_without_a_log(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"no directory __consumer_offsets-<partition> with segments"):
        records(spark, [tmp_path.as_uri()])


def test_a_segment_that_would_not_fit_into_memory(spark: SparkSession, log_dir: Path) -> None:
    os.truncate(log_dir / "__consumer_offsets-0" / f"{0:020d}.log", FILE_BYTES_MAX + 1)
    with pytest.raises(
        AuditError, match=rf"bytes, and Spark reads whole files, of which {FILE_BYTES_MAX} bytes"
    ):
        records(spark, [log_dir.as_uri()])
