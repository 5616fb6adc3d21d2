# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper log`: exit codes, what is printed, and a node that goes on with what was mended."""

import http.client
import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from protocol.placement import partition_for
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import OFFSETS_TOPIC
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.cli.terminals import on_a_terminal
from tests.storage.test_repair import P, contents, fill, overwrite, places
from tests.support.command import groupkeeper
from tests.support.documented import Documented
from tests.support.raw import commit_offsets, create_topic
from tests.support.service import Service, serving, wait_until

pytestmark = pytest.mark.process


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return groupkeeper("log", *arguments)


def hurt(data_dir: Path, base_offset: int) -> None:
    path, start, _ = places(data_dir)[base_offset]
    overwrite(path, start + 70, b"\xfe\xfe")


def test_a_whole_log(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    done = run("check", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["PARTITION", "SEGMENTS", "BYTES"]
    assert lines[1].split() == [str(P), "2", "1070", "5", "15", "0", "14", "whole"]
    assert lines[-1] == "1 partition, 0 damaged"


def test_a_terminal_shows_the_progress_of_a_check(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    shown = on_a_terminal("log", "check", "--data-dir", str(tmp_path), columns=120)
    assert shown.index("checking partitions") < shown.index("1/1") < shown.index("1 partition, 0 damaged")


def test_damage_has_an_exit_code_and_a_place(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    hurt(tmp_path, 6)
    path, start, _ = places(tmp_path)[6]
    done = run("check", "--data-dir", str(tmp_path), "--partition", str(P))
    assert done.returncode == 1
    assert f"partition {P} is damaged: {path}, 214 bytes from byte {start}, offset 6: checksum" in done.stdout
    assert done.stdout.endswith("1 partition, 1 damaged\n")
    (found,) = json.loads(run("check", "--data-dir", str(tmp_path), "--json").stdout)
    assert not found["clean"]
    (damage,) = found["partitions"][0]["damages"]
    assert (damage["file"], damage["position"], damage["next_offset"]) == (str(path), start, 9)


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    assert run("check", "--data-dir", str(tmp_path / "nowhere")).returncode == 2
    fill(tmp_path, 1)
    done = run("check", "--data-dir", str(tmp_path), "--partition", "7")
    assert (done.returncode, done.stderr) == (2, f"groupkeeper: {tmp_path}: there is no partition 7\n")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_directory_that_never_was_a_nodes_is_a_mistake(tmp_path: Path, as_json: list[str]) -> None:
    done = run("check", "--data-dir", str(tmp_path), *as_json)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"groupkeeper: {tmp_path}: this is not the data directory of a node\n"


def test_a_file_in_the_place_of_the_directory_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "afile").touch()
    done = run("check", "--data-dir", str(tmp_path / "afile"))
    said = f"groupkeeper: {tmp_path / 'afile'}: this is a file, and a directory is needed here\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_new_nodes_directory_has_nothing_that_is_damaged(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        service.terminate()
    done = run("check", "--data-dir", str(service.data_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 damaged\n")


def test_groups_of_a_damaged_partition_are_said_to_be_missing(tmp_path: Path) -> None:
    with serving(tmp_path, {"offsets.topic.num.partitions": 2}) as service:
        create_topic(service.bootstrap, "t", 1)
        for number in range(3):
            commit_offsets(service.bootstrap, "g", "t", {0: number})
        service.terminate()
        partition = partition_for(GroupId("g"), 2)
        segment = service.data_dir / f"{OFFSETS_TOPIC}-{partition}" / f"{0:020}.log"
        overwrite(segment, 80, b"\xfe\xfe")
        service.launch()
        wait_until(lambda: service.http_status("/ready") in (200, 503), what=service.log_text)
        wait_until(lambda: '"1":' in body(service) or '"0":' in body(service), what=lambda: body(service))
        assert (service.http_status("/ready"), service.http_status("/ready?strict=1")) == (503, 503), (
            "one of two is not most of them"
        )
        done = groupkeeper("groups", "list", "--bootstrap", service.bootstrap)
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            f"the groups of 1 partition are missing, because they are not served now: {partition} "
            in done.stderr
        )


def body(service: Service) -> str:
    """What has failed, as `/ready` says it."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.metrics_port, timeout=120)) as connection:
        connection.request("GET", "/ready")
        return json.dumps(json.loads(connection.getresponse().read())["partitions_failed"])


def test_repair_by_hand(documented: Documented, tmp_path: Path) -> None:
    check, say, repair = documented.commands
    here = {"DIR": tmp_path}
    of_one = {**here, "--partition P": f"--partition {P}"}
    fill(tmp_path, 5)
    hurt(tmp_path, 6)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.log")}
    dry = documented.run(say, of_one)
    assert dry.stderr == "dry run: nothing was changed; --execute makes the changes\n"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.log")} == before
    done = documented.run(repair, of_one)
    assert "saved: 4 batches with 12 records" in done.stdout
    assert "lost: 214 bytes, which held 3 offsets of the log" in done.stdout
    assert "certain: 3 committed offsets" in done.stdout
    assert "MAY BE OLDER THAN WHAT WAS COMMITTED: 0 offsets in 0 groups" in done.stdout
    (aside,) = (tmp_path / f"{OFFSETS_TOPIC}-{P}").glob("damaged-*")
    assert str(aside) in done.stdout
    assert sorted(contents(tmp_path)) == [0, 3, 9, 12]
    documented.run(check, here)
    again = documented.run(repair, of_one)
    assert "is not damaged: nothing was done" in again.stdout
    missing = run("repair", "--partition", "9", "--data-dir", str(tmp_path), "--execute")
    assert (missing.returncode, "no such partition" in missing.stderr) == (1, True)


def test_what_was_lost_is_named_as_everywhere_else(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    committed = OffsetAndMetadata(Offset(1), -1, "", 1)
    builder = BatchBuilder()
    builder.append_in_one_batch([OffsetCommitRecord(GroupId("größe\x1b日本"), "topic", 0, committed)])
    at = manager.end_offset(Partition(P))
    manager.append([Entry(Partition(P), at, builder.build(at, LeaderEpoch(0), 1)[0])], sync=False)
    manager.close()
    path, start, _ = places(tmp_path)[at]
    data = bytearray(path.read_bytes())
    data[data.index(b"topic", start)] ^= 2
    path.write_bytes(data)
    done = run("repair", "--partition", str(P), "--data-dir", str(tmp_path))
    assert "named in the lost part, as far as it can be read: größe\\x1b日本\n" in done.stdout


@pytest.mark.slow
def test_beside_a_running_node(tmp_path: Path) -> None:
    service = Service(tmp_path)
    fill(service.data_dir, 5)
    hurt(service.data_dir, 6)
    try:
        service.launch()
        while service.http_status("/health") != 200:
            assert service._process is not None
            service._process.assert_running()
        done = run("check", "--data-dir", str(service.data_dir))
        assert done.returncode == 1
        assert "the data directory is in use by process" in done.stdout
        assert f"partition {P} is damaged" in done.stdout
        refused = run("repair", "--partition", str(P), "--data-dir", str(service.data_dir), "--execute")
        assert refused.returncode == 1
        assert "in use by process" in refused.stderr
        service.terminate()
        path, start, _ = places(service.data_dir)[6]
        lines = [json.loads(line) for line in service.log_text().splitlines() if line.startswith("{")]
        (line,) = [line for line in lines if line["event"] == "cannot load partition"]
        assert (line["partition"], line["file"], line["position"]) == (P, str(path), start)
        assert line["reason"].startswith("checksum")
        assert (
            run("repair", "--partition", str(P), "--data-dir", str(service.data_dir), "--execute").returncode
            == 0
        )
        service.start()
    finally:
        service.close()
