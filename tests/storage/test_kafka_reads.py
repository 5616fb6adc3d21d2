# SPDX-License-Identifier: Apache-2.0
"""Kafka's own tool reads a directory that we closed."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from protocol.newtypes import GroupId, LeaderEpoch, MemberId, Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.format.batch import BatchBuilder
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
)
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.kafka.jars import require_kafka_classpath

NOW = 1_700_000_000_123

SUBSCRIPTION = bytes.fromhex("0001 00000001 0005") + b"topic" + bytes.fromhex("ffffffff 00000000")
ASSIGNMENT = bytes.fromhex("0001 00000001 0005") + b"topic" + bytes.fromhex("00000001 00000003 ffffffff")

RECORDS: list[Record] = [
    OffsetCommitRecord(GroupId("group"), "topic", 3, OffsetAndMetadata(Offset(42), 7, "metadata", NOW)),
    OffsetCommitRecord(GroupId("group"), "topic", 4, OffsetAndMetadata(Offset(43), -1, "", NOW)),
    OffsetCommitRecord(GroupId("group"), "topic", 5, OffsetAndMetadata(Offset(44), -1, "", NOW, NOW + 1)),
    OffsetCommitRecord(GroupId("group"), "topic", 3, None),
    GroupMetadataRecord(
        GroupId("group"),
        GroupMetadataValue(
            "consumer",
            1,
            "range",
            MemberId("member-1"),
            NOW,
            (
                MemberValue(
                    MemberId("member-1"),
                    "i",
                    "client",
                    "/127.0.0.1",
                    300_000,
                    45_000,
                    SUBSCRIPTION,
                    ASSIGNMENT,
                ),
            ),
        ),
    ),
    GroupMetadataRecord(GroupId("group"), None),
]


def dump(*paths: Path, options: Sequence[str] = ("--offsets-decoder", "--print-data-log")) -> str:
    """What Kafka's DumpLogSegments prints about the files of a segment."""
    classpath = require_kafka_classpath()
    tool = "org.apache.kafka.tools.DumpLogSegments"
    arguments = ["--files", ",".join(map(str, paths)), *options]
    done = subprocess.run(
        ["java", "-cp", classpath, tool, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.kafka
@pytest.mark.parametrize("version", [3, 4])
def test_kafka_reads_a_directory_that_was_closed(tmp_path: Path, version: int) -> None:
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for compression in ((0, 1, 2), (0, 3, 4))[version - 3]:
        builder = BatchBuilder(offset_value_version=version, compression=compression)
        builder.append_in_one_batch(RECORDS)
        base_offset = manager.end_offset(Partition(11))
        (batch,) = builder.build(base_offset, LeaderEpoch(2), NOW)
        manager.append([Entry(Partition(11), base_offset, batch)], sync=True)
    manager.close()
    printed = dump(tmp_path / "__consumer_offsets-11" / f"{0:020d}.log")
    assert printed.count("isvalid: true") == 3
    assert "isvalid: false" not in printed
    assert printed.count(f"CreateTime: {NOW}") == 3 * (1 + len(RECORDS))
    assert '"type":"1","data":{"group":"group","topic":"topic","partition":3}' in printed
    offset = f'"offset":42,"leaderEpoch":7,"metadata":"metadata","commitTimestamp":{NOW}'
    assert f'"version":"{version}","data":{{{offset}' in printed
    assert f'"commitTimestamp":{NOW},"expireTimestamp":{NOW + 1}' in printed
    assert '"protocolType":"consumer","generation":1,"protocol":"range","leader":"member-1"' in printed
    assert '"groupInstanceId":"i","clientId":"client","clientHost":"/127.0.0.1"' in printed
    assert printed.count("payload: <DELETE>") == 6


@pytest.mark.kafka
def test_kafka_agrees_with_the_indexes(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, LogSettings(segment_bytes=60_000), RealFileSystem())
    for number in range(300):
        builder = BatchBuilder()
        builder.append_in_one_batch([RECORDS[0], RECORDS[4]])
        base_offset = manager.end_offset(Partition(0))
        (batch,) = builder.build(base_offset, LeaderEpoch(number // 100), NOW + 7 * number - number % 3 * 30)
        manager.append([Entry(Partition(0), base_offset, batch)], sync=False)
        if number % 50 == 0:
            manager.checkpoint_journal()
    manager.close()
    directory = tmp_path / "__consumer_offsets-0"
    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    assert len(indexes) == 2 * len(list(directory.glob("*.log"))) > 2
    for options in ((), ("--verify-index-only",)):
        printed = dump(*indexes, options=options)
        assert "Mismatch" not in printed
        assert "not found" not in printed.lower()
        assert "out of order" not in printed.lower()
        if not options:
            # With 60,000 bytes a segment and 4096 between entries.
            assert printed.count(" position: ") >= 10
            assert printed.count("timestamp: ") >= 10
    printed = dump(*indexes, options=["--index-sanity-check"])
    assert printed.count("passed sanity check") == len(indexes)
