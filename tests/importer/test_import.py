# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper import` from directories as a broker leaves them: whole or not at all, and nothing written there."""

import dataclasses
import errno
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from coordinator.catalogue.file import CatalogueFile
from coordinator.catalogue.startup_checks import STAGING, adapt_settings_to_data
from coordinator.config import Settings
from coordinator.host_resources import real_machine
from coordinator.importer.broker_directories import read_broker_directories
from coordinator.importer.survey import survey_partitions
from coordinator.importer.target import DirectoryIdentity, ImportResult, import_data_directory
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from protocol.placement import partition_for
from storage.disk.checkpoint_file import read_offsets, write_offsets
from storage.disk.filesystem import FileSystem, RealFileSystem
from storage.disk.layout import (
    CLEAN_SHUTDOWN_FILE,
    LOG_START_FILE,
    META_FILE,
    OFFSETS_TOPIC,
    RECOVERY_POINT_FILE,
)
from storage.disk.properties import encode_uuid
from storage.errors import StorageError
from storage.format.batch import BatchBuilder, iter_batches
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record, UnknownRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.cli.terminals import on_a_terminal
from tests.storage.foreign import plain, transactional
from tests.support import raw
from tests.support.command import groupkeeper
from tests.support.service import Service

pytestmark = pytest.mark.process

COUNT = 7
GROUPS = ["", *(f"group-{number}" for number in range(39))]
"""A group's name may be empty: simple consumers commit offsets of such a group."""
TOPIC_ID = bytes(range(16))


def dry_run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return groupkeeper("import", *arguments)


def run(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return groupkeeper("import", *arguments, "--execute", extra=extra)


def broker(log_dir: Path, *, count: int = COUNT, groups: Sequence[str] = GROUPS) -> Path:
    """A log directory as a broker leaves it, with offsets of all groups for two topics, one of which it has."""
    manager = LogManager.open(log_dir, LogSettings(), RealFileSystem())
    for partition in range(count):
        records: list[Record] = [
            OffsetCommitRecord(
                GroupId(group), topic, index, OffsetAndMetadata(Offset(100 + index), -1, "", 1 << 42)
            )
            for group in groups
            if partition_for(GroupId(group), count) == partition
            for topic, index in (("orders", 0), ("orders", 2), ("gone", 4))
        ]
        records.append(UnknownRecord(3, b"\0\3\0\1x", b"\0\0"))
        builder = BatchBuilder()
        builder.append_in_one_batch(records)
        manager.append(
            [Entry(Partition(partition), Offset(0), builder.build(Offset(0), LeaderEpoch(0), 1 << 42)[0])],
            sync=False,
        )
    manager.close()
    (log_dir / META_FILE).write_text("version=1\ncluster.id=the-cluster\nnode.id=17\n")
    (log_dir / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":5}')
    for name in ("orders-0", "orders-5", "idle-0", "__transaction_state-3", "idle-1.ab12-delete", "old-1"):
        (log_dir / name).mkdir()
        if name != "old-1":
            topic_id = encode_uuid(TOPIC_ID if name.startswith("orders") else os.urandom(16))
            (log_dir / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return log_dir


def everything(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def test_all_of_a_broker(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    before = everything(source)
    done = run("--from-log-dirs", source, "--data-dir", data_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "7 records are of unsupported types; they are kept",
        "imported 40 groups, 120 offsets, 4 topics, 7 partitions",
    ]
    assert everything(source) == before
    catalogue = CatalogueFile(RealFileSystem(), data_dir).read()
    assert catalogue.offsets_topic.partitions == COUNT
    topics = {topic.name: topic for topic in catalogue.snapshot_topics()}
    assert {name: topic.partitions for name, topic in topics.items()} == {
        "gone": 5,
        "idle": 1,
        "old": 2,
        "orders": 6,
    }
    assert topics["orders"].id == TOPIC_ID
    assert "cluster.id=the-cluster" in (data_dir / META_FILE).read_text()
    for partition in range(COUNT):
        name = f"{OFFSETS_TOPIC}-{partition}/{0:020}.log"
        assert (data_dir / name).read_bytes() == (source / name).read_bytes(), "copied as it is"
    assert (data_dir / CLEAN_SHUTDOWN_FILE).exists()
    assert not (data_dir / STAGING).exists()


def test_a_terminal_shows_the_progress(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    flags = ("--from-log-dirs", str(source), "--data-dir", str(data_dir), "--execute")
    shown = on_a_terminal("import", *flags, columns=120)
    assert shown.index("reading partitions") < shown.index("copying partitions")
    assert shown.index("7/7") < shown.index("imported 40 groups")


def test_a_dry_run_writes_nothing_at_all(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    before = everything(tmp_path)
    done = dry_run("--from-log-dirs", source, "--data-dir", data_dir)
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert last == "found 40 groups, 120 offsets, 4 topics, 7 partitions"
    assert everything(tmp_path) == before


def test_several_log_dirs(tmp_path: Path) -> None:
    source, other = broker(tmp_path / "broker"), tmp_path / "other disk"
    other.mkdir()
    for name in (f"{OFFSETS_TOPIC}-3", "orders-5", CLEAN_SHUTDOWN_FILE):
        (source / name).rename(other / name)
    done = run("--from-log-dirs", source, "--data-dir", tmp_path / "data")
    assert done.returncode == 1
    assert "there are partitions up to 6, but not 3" in done.stderr
    done = run("--from-log-dirs", f"{source},{other}", "--data-dir", tmp_path / "data")
    assert done.returncode == 0
    assert f"{source}: not stopped cleanly" in done.stdout
    assert done.stdout.endswith("imported 40 groups, 120 offsets, 4 topics, 7 partitions\n")
    assert "\n" not in dry_run("--from-log-dirs", f"{source},{source}").stderr.strip()


def test_a_running_brokers_directory_is_refused(tmp_path: Path) -> None:
    source = broker(tmp_path / "broker")
    with (source / ".lock").open("r+b") as lock:
        # As Java's FileChannel.tryLock does it.
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done = run("--from-log-dirs", source, "--data-dir", tmp_path / "data")
    assert done.returncode == 1
    assert "stop the broker first" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_torn_end_is_left_out(tmp_path: Path) -> None:
    source = broker(tmp_path / "broker")
    (source / CLEAN_SHUTDOWN_FILE).unlink()
    (source / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    segment = source / f"{OFFSETS_TOPIC}-2" / f"{0:020}.log"
    segment.write_bytes(segment.read_bytes() + segment.read_bytes()[:50])
    done = run("--from-log-dirs", source, "--data-dir", tmp_path / "data")
    assert done.returncode == 0
    assert "50 bytes left out" in done.stdout
    assert "imported 40 groups" in done.stdout


def test_damage_is_told_and_can_be_mended_in_the_copy(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    segment = source / f"{OFFSETS_TOPIC}-2" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[90] ^= 1
    group = next(group for group in GROUPS if partition_for(GroupId(group), COUNT) == 2)
    record = OffsetCommitRecord(GroupId(group), "orders", 0, OffsetAndMetadata(Offset(1), -1, "", 1 << 42))
    segment.write_bytes(data + plain([record], 1_000))
    done = run("--from-log-dirs", source, "--data-dir", data_dir)
    assert done.returncode == 1
    assert f"partition 2 is damaged: {segment} at byte 0" in done.stdout
    command = f"groupkeeper log repair --partition 2 --data-dir {data_dir} --execute"
    assert command in done.stdout
    mended = groupkeeper(*command.split()[1:])
    assert mended.returncode == 0
    manager = LogManager.open(data_dir, LogSettings(), RealFileSystem())
    assert manager.failed_partitions == {}
    manager.close()


def test_open_transactions_are_told(tmp_path: Path) -> None:
    source = broker(tmp_path / "broker", count=1)
    segment = source / f"{OFFSETS_TOPIC}-0" / f"{0:020}.log"
    record = OffsetCommitRecord(
        GroupId("group-1"), "orders", 0, OffsetAndMetadata(Offset(999), -1, "", 1 << 42)
    )
    segment.write_bytes(segment.read_bytes() + transactional([record], 121, 5))
    done = run("--from-log-dirs", source, "--data-dir", tmp_path / "data")
    assert done.returncode == 0
    assert "1 transactions are open: the 1 offsets in them are left out" in done.stdout


def test_a_target_that_holds_something(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "precious").write_text("!")
    done = run("--from-log-dirs", source, "--data-dir", data_dir)
    assert done.returncode == 1
    assert "not empty (precious)" in done.stderr
    assert everything(data_dir) | {".lock": None} == {"precious": b"!", ".lock": None}
    done = run("--from-log-dirs", source, "--data-dir", data_dir, "--force")
    assert done.returncode == 0
    (aside,) = data_dir.glob("before-import-*")
    assert everything(aside) == {"precious": b"!"}
    assert f"the previous contents of {data_dir} are in {aside}" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker", "data"]


class MountedFileSystem(RealFileSystem):
    """Real files, with a file system of its own at `mount`, and another one below it if `inner` is given."""

    def __init__(self, mount: Path, inner: Path | None = None) -> None:
        super().__init__()
        self._mount = mount
        self._inner = inner

    def rename(self, source: Path, target: Path) -> None:
        if (self._mount in source.parents) != (self._mount in target.parents):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source))
        if source == self._inner:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(source))
        super().rename(source, target)


def import_into(fs: FileSystem, source: Path, data_dir: Path, *, force: bool) -> ImportResult:
    """Import as the command does, on this file system."""
    found = read_broker_directories(fs, [source])
    survey = survey_partitions(fs, found.offsets, found.num_partitions)
    machine = dataclasses.replace(real_machine(), fs=fs)
    return import_data_directory(machine, data_dir, found, survey, DirectoryIdentity(1, None), force=force)


def test_a_fresh_volume_is_empty(tmp_path: Path) -> None:
    source, volume = broker(tmp_path / "broker"), tmp_path / "volume"
    (volume / "lost+found").mkdir(parents=True)
    (volume / "lost+found" / "#12").write_text("root's")
    assert import_into(MountedFileSystem(volume), source, volume, force=False).set_aside is None
    assert (volume / "lost+found" / "#12").read_text() == "root's"


def test_what_a_volume_holds_is_set_aside_within_it_and_then_ignored(tmp_path: Path) -> None:
    source, volume = broker(tmp_path / "broker"), tmp_path / "volume"
    (volume / "lost+found").mkdir(parents=True)
    fs = MountedFileSystem(volume)
    import_into(fs, broker(tmp_path / "other", groups=["precious"]), volume, force=False)
    before = everything(volume)
    asides = []
    for _ in range(3):  # within one second, or not
        aside = import_into(fs, source, volume, force=True).set_aside
        assert aside is not None
        asides.append(aside)
    assert len(set(asides)) == 3
    kept = everything(asides[0])
    assert kept == {name: data for name, data in before.items() if name not in (".lock", "lost+found")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker", "other", "volume"]

    checked = groupkeeper("log", "check", "--data-dir", volume, "--json")
    assert (checked.returncode, len(json.loads(checked.stdout)[0]["partitions"])) == (0, COUNT)
    done = run("--from-log-dirs", volume, "--data-dir", tmp_path / "next")
    assert f"imported {len(GROUPS)} groups, {3 * len(GROUPS)} offsets" in done.stdout
    service = Service(tmp_path / "served")
    service.data_dir = volume
    try:
        service.start()
        assert raw.list_groups(service.bootstrap).keys() == set(GROUPS)
        service.terminate()
    finally:
        service.close()
    assert everything(asides[0]) == kept


def test_what_cannot_be_set_aside_stays_where_it_is(tmp_path: Path) -> None:
    source, volume = broker(tmp_path / "broker"), tmp_path / "volume"
    for name in ("a", "b", "c"):
        (volume / name).mkdir(parents=True)
        (volume / name / "precious").write_text(name)
    before = everything(volume)
    with pytest.raises(StorageError, match="busy"):
        import_into(MountedFileSystem(volume, volume / "b"), source, volume, force=True)
    assert {name: data for name, data in everything(volume).items() if name != ".lock"} == before


def test_what_is_left_half_done_is_not_served(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    (data_dir / STAGING).mkdir(parents=True)
    served = groupkeeper("serve", "--data-dir", data_dir, "--listen", "127.0.0.1:0")
    assert served.returncode == 1
    assert "an import was interrupted here" in served.stderr
    assert run("--from-log-dirs", source, "--data-dir", data_dir).returncode == 1
    assert run("--from-log-dirs", source, "--data-dir", data_dir, "--force").returncode == 0


def test_groups_that_lie_elsewhere(tmp_path: Path) -> None:
    source = broker(tmp_path / "broker")
    for path in (source / f"{OFFSETS_TOPIC}-{COUNT - 1}").iterdir():
        path.unlink()
    (source / f"{OFFSETS_TOPIC}-{COUNT - 1}").rmdir()
    done = run("--from-log-dirs", source, "--data-dir", tmp_path / "data")
    assert done.returncode == 1
    assert (
        f"with {COUNT} partitions each group would be where it is, and there are only {COUNT - 1}: give all log "
        f"directories of the broker; if it had no more partitions, add --partitions {COUNT - 1}"
    ) in done.stderr
    assert (
        run("--from-log-dirs", source, "--data-dir", tmp_path / "data", "--partitions", COUNT).returncode == 1
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--from-log-dirs", ","), 2, "expected one directory or more"),
        (("--from-log-dirs", "/nowhere"), 1, "/nowhere: there is no such directory"),
        (("--from-log-dirs", "."), 1, "no group was ever here"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run(*arguments, "--data-dir", tmp_path / "data")
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_number_of_partitions_that_somebody_chose(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    where = ("--from-log-dirs", source, "--data-dir", data_dir)
    done = run(*where, GROUPKEEPER_OFFSETS_TOPIC_NUM_PARTITIONS="12")
    assert done.returncode == 1
    assert "the broker has 7 partitions, and offsets.topic.num.partitions is 12" in done.stderr
    assert run(*where, GROUPKEEPER_OFFSETS_TOPIC_NUM_PARTITIONS="7").returncode == 0
    assert (
        adapt_settings_to_data(RealFileSystem(), Settings(data_dir=data_dir)).offsets_topic_num_partitions
        == 7
    )
    chosen = Settings(data_dir=data_dir, offsets_topic_num_partitions=12)
    assert adapt_settings_to_data(RealFileSystem(), chosen) is chosen
    empty = Settings(data_dir=tmp_path)
    assert adapt_settings_to_data(RealFileSystem(), empty) is empty


def test_a_start_that_the_broker_noted_comes_along(tmp_path: Path) -> None:
    """What lies before it was deleted there: it must not come back here."""
    source, data_dir = broker(tmp_path / "broker", count=1), tmp_path / "data"
    shown, fs = len(GROUPS), RealFileSystem()
    start = source / LOG_START_FILE
    (whole,) = iter_batches(next((source / f"{OFFSETS_TOPIC}-0").glob("*.log")).read_bytes())
    for offset, groups in ((whole.next_offset - 1, shown), (whole.next_offset, 0)):
        write_offsets(
            fs, start, {(OFFSETS_TOPIC, Partition(0)): Offset(offset), ("orders", Partition(0)): Offset(3)}
        )
        done = run("--from-log-dirs", source, "--data-dir", data_dir, "--force")
        assert f"imported {groups} groups, {3 * groups} offsets" in done.stdout
        assert read_offsets(fs, data_dir / LOG_START_FILE) == {(OFFSETS_TOPIC, Partition(0)): offset}
        manager = LogManager.open(data_dir, LogSettings(), fs)
        assert manager.get_or_create_log(Partition(0)).start_offset == offset
        manager.close()


def test_a_topic_that_had_got_more_partitions(tmp_path: Path) -> None:
    """Kafka serves it as it is: whatever was stored before lies where nobody looks for it."""
    source, data_dir = broker(tmp_path / "broker", count=3), tmp_path / "data"
    for partition in range(3, COUNT):
        (source / f"{OFFSETS_TOPIC}-{partition}").mkdir()
    lost = [name for name in GROUPS if partition_for(GroupId(name), 3) != partition_for(GroupId(name), COUNT)]
    done = run("--from-log-dirs", source, "--data-dir", data_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"imported {len(GROUPS)} groups, {3 * len(GROUPS)} offsets" in done.stdout
    assert all(repr(name) in done.stdout for name in lost)
    assert "these groups were placed by 3 partitions" in done.stdout
    checked = groupkeeper("log", "check", "--data-dir", data_dir)
    assert checked.returncode == 0
    assert "these groups were placed by 3 partitions" in checked.stdout
    found = json.loads(groupkeeper("log", "check", "--data-dir", data_dir, "--json").stdout)[0]["partitions"]
    assert sorted(name for each in found for name in each["misplaced_groups"]) == sorted(lost)
    assert {each["belongs_to"] for each in found} == {None}


def test_a_directory_in_the_wrong_place(tmp_path: Path) -> None:
    source, data_dir = broker(tmp_path / "broker"), tmp_path / "data"
    (source / f"{OFFSETS_TOPIC}-0").rename(source / "x")
    (source / f"{OFFSETS_TOPIC}-1").rename(source / f"{OFFSETS_TOPIC}-0")
    (source / "x").rename(source / f"{OFFSETS_TOPIC}-1")
    says = [
        f"and all belong to partition {1 - partition}: its directory seems to be that of partition {1 - partition}; "
        "stop the node, put each partition's directory back under its own number"
        for partition in range(2)
    ]
    done = run("--from-log-dirs", source, "--data-dir", data_dir)
    assert done.returncode == 1
    assert all(text in done.stdout for text in says)
    for directory in (source, data_dir):
        checked = groupkeeper("log", "check", "--data-dir", directory)
        assert checked.returncode == 1
        assert all(text in checked.stdout for text in says)
        found = json.loads(groupkeeper("log", "check", "--data-dir", directory, "--json").stdout)[0][
            "partitions"
        ]
        assert [each["belongs_to"] for each in found] == [1, 0, *([None] * (COUNT - 2))]


def test_one_of_several_log_directories_says_nothing_of_where_groups_belong(tmp_path: Path) -> None:
    source = broker(tmp_path / "broker")
    for partition in (1, 3, 5, 6):
        shutil.rmtree(source / f"{OFFSETS_TOPIC}-{partition}")
    (source / RECOVERY_POINT_FILE).unlink()
    checked = groupkeeper("log", "check", "--data-dir", source)
    assert (checked.returncode, "belong" in checked.stdout) == (0, False)
    (source / f"{OFFSETS_TOPIC}-2").rename(source / "x")
    (source / f"{OFFSETS_TOPIC}-4").rename(source / "y")
    checked = groupkeeper("log", "check", "--data-dir", source)
    assert (checked.returncode, "belong" in checked.stdout) == (0, False)
