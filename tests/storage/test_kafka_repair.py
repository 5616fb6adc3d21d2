# SPDX-License-Identifier: Apache-2.0
"""A broker takes back a partition that was damaged and mended here."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from protocol.newtypes import Partition
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import OFFSETS_TOPIC
from storage.format.batch import iter_batches
from storage.log_manager import LogManager
from storage.recovery.full_check import check_directory
from storage.recovery.repair import carry_out, plan_repair
from storage.settings import LogSettings
from tests.kafka.broker import KafkaBroker
from tests.storage.test_kafka_directory import GROUPS, PARTITIONS, commit, committed
from tests.storage.test_kafka_reads import dump


@pytest.mark.slow
@pytest.mark.kafka
def test_a_broker_goes_on_with_what_was_mended_here(tmp_path: Path) -> None:
    fs = RealFileSystem()
    broker = KafkaBroker(tmp_path, {"offsets.topic.num.partitions": 1})
    try:
        broker.start()
        commit(broker.bootstrap)
        broker.terminate()
        assert check_directory(fs, broker.data_dir).is_undamaged
        directory = broker.data_dir / f"{OFFSETS_TOPIC}-0"
        segment = directory / f"{0:020}.log"
        data = bytearray(segment.read_bytes())
        batches = list(iter_batches(bytes(data)))
        data[batches[4].position + 80] ^= 1
        segment.write_bytes(data)
        assert not check_directory(fs, broker.data_dir).is_undamaged
        repair = carry_out(
            fs, broker.data_dir, plan_repair(fs, broker.data_dir, Partition(0)), datetime.now(UTC)
        )
        assert repair.lost_offset_count == batches[4].count
        printed = dump(segment)
        assert printed.count("isvalid: true") == len(batches)
        assert "isvalid: false" not in printed

        broker.start()
        kept = [
            group
            for group in GROUPS
            if committed(broker.bootstrap, group) == [100 + p for p in range(PARTITIONS)]
        ]
        # A batch holds one commit, of one group.
        assert len(kept) == len(GROUPS) - 1
        broker.terminate()
        assert "Corrupt" not in broker.log.read_text(errors="replace")
        manager = LogManager.open(broker.data_dir, LogSettings(), RealFileSystem())
        assert (manager.failed_partitions, manager.cuts) == ({}, ())
        manager.close()
    finally:
        broker.close()
