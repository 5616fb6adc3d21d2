# SPDX-License-Identifier: Apache-2.0
"""What a second Groupkeeper reads of the first one's `__consumer_offsets` makes it a whole copy of that."""

from pathlib import Path

import pytest

from protocol.newtypes import Partition
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import CLEAN_SHUTDOWN_FILE, META_FILE
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.support.command import groupkeeper
from tests.support.raw import RawConnection, commit_offsets, create_topic, fetch_offsets
from tests.support.reading import read_all
from tests.support.service import serving

pytestmark = pytest.mark.process

PARTITIONS = 5
GROUPS = [f"group-{number}" for number in range(12)]


def test_a_second_one_follows_the_offsets_topic(tmp_path: Path) -> None:
    settings: dict[str, str | int] = {"offsets.topic.num.partitions": PARTITIONS}
    copy, data_dir = tmp_path / "copy", tmp_path / "second" / "data"
    log = LogManager.open(copy, LogSettings(), RealFileSystem())
    read_upto = dict.fromkeys(map(Partition, range(PARTITIONS)), 0)
    with serving(tmp_path / "first", settings) as first:
        create_topic(first.bootstrap, "work", 3)
        for turn in range(3):  # it goes on where it was
            for number, group in enumerate(GROUPS):
                commit_offsets(first.bootstrap, group, "work", {turn: 10 * turn + number, 0: 100 + turn})
            with RawConnection(first.bootstrap) as connection:
                for partition, upto in read_upto.items():
                    for batch in read_all(connection, partition, upto):
                        data = batch.buffer[batch.position : batch.end]
                        log.append([Entry(partition, batch.base_offset, data)], sync=False)
                        read_upto[partition] = batch.next_offset
        wanted = {group: fetch_offsets(first.bootstrap, group) for group in GROUPS}
    log.close()
    assert min(len(offsets) for offsets in wanted.values()) == 3
    (copy / META_FILE).write_text("version=1\ncluster.id=the-first\nnode.id=1\n")
    (copy / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":5}')
    (copy / "work-2").mkdir()
    done = groupkeeper("import", "--from-log-dirs", copy, "--data-dir", data_dir, "--execute")
    assert (done.returncode, done.stderr) == (0, "")
    with serving(tmp_path / "second", settings) as second:
        assert {group: fetch_offsets(second.bootstrap, group) for group in GROUPS} == wanted
