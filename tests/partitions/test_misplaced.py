# SPDX-License-Identifier: Apache-2.0
"""Groups in a partition where no client looks for them: served as in Kafka, and not in silence."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coordinator.partitions.misplaced_group_texts import DIRECTORY_IN_WRONG_PLACE, PUT_IN_PLACE
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from protocol.placement import partition_for
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import OFFSETS_TOPIC, partition_dir
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, UnknownRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.admin.test_values import get, metric
from tests.partitions.running import PARTITIONS, Running, node
from tests.support.log_lines import captured

NO_CLIENT = "groups are in a partition where no client looks for them"


def write(data_dir: Path, groups: Mapping[int, Sequence[str]]) -> None:
    """A log with an offset of each group, in the partition that is given, and a record of another kind in each."""
    manager = LogManager.open(data_dir, LogSettings(), RealFileSystem())
    for partition in range(PARTITIONS):
        builder = BatchBuilder()
        value = OffsetAndMetadata(Offset(5), -1, "", 1 << 42)
        builder.append_in_one_batch([UnknownRecord(3, b"\0\3\0\1x", b"\0\0")])
        builder.append_in_one_batch(
            [OffsetCommitRecord(GroupId(name), "topic", 0, value) for name in groups.get(partition, ())]
        )
        (batch,) = builder.build(Offset(0), LeaderEpoch(0), 1 << 42)
        manager.append([Entry(Partition(partition), Offset(0), batch)], sync=False)
    manager.close()


def groups_by(count: int, number: int) -> dict[int, list[str]]:
    """Names of groups by the partition that they have among so many."""
    found: dict[int, list[str]] = {}
    for name in (f"group-{each}" for each in range(number)):
        found.setdefault(partition_for(GroupId(name), count), []).append(name)
    return found


async def ready(running: Running) -> dict[str, Any]:
    """What /ready says, which serves."""
    status, _, body = await get(running, "/ready")
    assert status == 200
    state: dict[str, Any] = json.loads(body)
    return state


async def test_a_copy_of_another_partition_is_served_and_reported(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    groups = groups_by(PARTITIONS, 40)
    groups[0] = groups[0][:2]  # the copy is longer, so nothing seems to be lost
    write(data_dir, groups)
    shutil.rmtree(partition_dir(data_dir, OFFSETS_TOPIC, Partition(0)))
    shutil.copytree(
        partition_dir(data_dir, OFFSETS_TOPIC, Partition(1)),
        partition_dir(data_dir, OFFSETS_TOPIC, Partition(0)),
    )
    with captured() as lines:
        async with node(data_dir, metrics=True) as running:
            state = await ready(running)
            assert (state["ready"], state["complete"]) == (True, False)
            (said,) = state["partitions_in_wrong_place"].items()
            assert said[0] == "0"
            assert said[1].startswith("all its groups belong to partition 1: stop the node")
            assert await metric(running, "partitions_in_wrong_place") == 1
            assert await metric(running, "misplaced_groups") == len(groups[1])
            client = await running.client()
            assert await client.fetch(groups[0][0]) == {}
            assert await client.fetch(groups[1][0]) == {0: 5}
    assert lines.of("warning") == []
    (error,) = (
        fields
        for level, event, fields in lines.lines
        if (level, event) == ("error", DIRECTORY_IN_WRONG_PLACE)
    )
    assert error == {
        "partition": 0,
        "belongs_to": 1,
        "groups": len(groups[1]),
        "names": groups[1][:20],
        "todo": PUT_IN_PLACE,
    }


async def test_a_topic_that_got_more_partitions_is_served_as_kafka_serves_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    write(data_dir, groups_by(PARTITIONS // 2, 40))
    with captured() as lines:
        async with node(data_dir, metrics=True) as running:
            state = await ready(running)
            assert (state["complete"], state["partitions_in_wrong_place"]) == (True, {})
            homes = groups_by(PARTITIONS, 40)
            gone = len(homes[2]) + len(homes[3])
            assert await metric(running, "partitions_in_wrong_place") == 0
            assert await metric(running, "misplaced_groups") == gone
            client = await running.client()
            assert [await client.fetch(homes[p][0]) for p in range(PARTITIONS)] == [{0: 5}, {0: 5}, {}, {}]
    assert lines.of("error") == []
    names = {fields["partition"]: fields["names"] for fields in lines.fields(NO_CLIENT)}
    assert names == {0: homes[2][:20], 1: homes[3][:20]}


async def test_groups_in_their_places_are_no_news(tmp_path: Path) -> None:
    write(tmp_path / "data", groups_by(PARTITIONS, 40))
    with captured() as lines:
        async with node(tmp_path / "data", metrics=True) as running:
            state = await ready(running)
            assert (state["complete"], state["partitions_in_wrong_place"]) == (True, {})
            assert await metric(running, "misplaced_groups") == 0
    assert lines.of("warning", "error") == []
