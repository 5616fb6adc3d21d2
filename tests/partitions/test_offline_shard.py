# SPDX-License-Identifier: Apache-2.0
"""The groups of a partition that is read without a node."""

from pathlib import Path

import pytest

from coordinator.migration.ledger import ledger_group_id
from coordinator.migration.model import Mark
from coordinator.partitions.offline_partition_reader import read_shard
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.format.batch import BatchBuilder
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.full_check import check_partition
from storage.settings import LogSettings

PARTITION = Partition(0)
LEDGER = ledger_group_id(PARTITION, 1)


def write(log_dir: Path, *groups: str) -> None:
    """A log with an offset of each group."""
    manager = LogManager.open(log_dir, LogSettings(), RealFileSystem())
    builder = BatchBuilder()
    value = OffsetAndMetadata(Offset(Mark.ADOPTED), -1, "", 1 << 42)
    builder.append_in_one_batch([OffsetCommitRecord(GroupId(group), "topic", 0, value) for group in groups])
    (batch,) = builder.build(Offset(0), LeaderEpoch(0), 1 << 42)
    manager.append([Entry(PARTITION, Offset(0), batch)], sync=False)
    manager.close()


@pytest.mark.parametrize("groups", [[""], ["", "other"], ["", LEDGER], [LEDGER, "other"]])
def test_every_group_is_there_but_the_ledger(tmp_path: Path, groups: list[str]) -> None:
    write(tmp_path, *groups)
    fs = RealFileSystem()
    shard = read_shard(fs, check_partition(fs, tmp_path, PARTITION), RecordDecoder()).shard
    assert [*shard.groups] == [group for group in groups if group != LEDGER]
    assert shard.ledger.group_id == (LEDGER if LEDGER in groups else "")
