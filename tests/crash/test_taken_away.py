# SPDX-License-Identifier: Apache-2.0
"""Files that go, under a running node or after it was killed: nothing acknowledged is missing without a word."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from protocol.newtypes import GroupId
from protocol.placement import partition_for
from tests.support import raw
from tests.support.command import groupkeeper
from tests.support.documented import Documented
from tests.support.processes import REPOSITORY, environment
from tests.support.service import Service
from tests.support.waiting import wait_until
from tests.workers.nodes import Nodes

GROUP, TOPIC = "taken", "taken-topic"
# No checkpoint comes in between: the newest offsets are in the journal, and perhaps in the segments.
QUIET = {"journal.checkpoint.interval.ms": 3_600_000, "num.partitions": 12}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with closing(Service(tmp_path, QUIET)) as started:
        started.start()
        raw.create_topic(started.bootstrap, TOPIC)
        yield started


def commit(connection: raw.RawConnection, offset: int, group: str = GROUP) -> int:
    """Commit, and return the error code."""
    answer = connection.call(raw.standalone_commit(group, TOPIC, {0: offset}), 8)
    return int(answer.topics[0].partitions[0].error_code)


def killed_after(service: Service, commits: int) -> Path:
    """Let a node acknowledge that many commits, kill it, and return its journal."""
    with raw.RawConnection(service.bootstrap) as connection:
        for offset in range(1, commits + 1):
            assert commit(connection, offset) == raw.NONE
    service.kill9()
    (journal,) = (service.data_dir / "journal").glob("*.journal")
    return journal


def not_started(service: Service) -> str:
    """The line that the node ends with, which does not start."""
    done = subprocess.run(
        service.command(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=REPOSITORY,
        env=environment(),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("groupkeeper: ")
    return last


def refused(service: Service, *words: str) -> None:
    """The node does not start and says why in one line; `log check` says the same."""
    last = not_started(service)
    assert all(word in last for word in words), last
    checked = groupkeeper("log", "check", "--data-dir", service.data_dir)
    assert checked.returncode == 1
    assert last.removeprefix("groupkeeper: ") in checked.stdout


def test_a_cut_journal_stops_the_start_until_the_loss_is_accepted(
    documented: Documented, service: Service
) -> None:
    say, repair = documented.commands
    here = {"DIR": service.data_dir}
    journal = killed_after(service, 30)
    whole = journal.read_bytes()
    last_byte = len(whole.rstrip(b"\0"))
    for size in (100, (4_096 + last_byte) // 2, len(whole) - 1):
        journal.write_bytes(whole[:size])
        refused(service, str(journal), "was cut" if size >= 4_096 else "header is damaged")
    journal.write_bytes(whole[: (4_096 + last_byte) // 2])
    said = documented.run(say, here, status=1)
    assert "nothing was changed" in said.stdout
    assert "--execute --accept-loss" in said.stdout
    refused(service, str(journal))
    done = documented.run(repair, here)
    assert "MAY BE OLDER" in done.stdout
    assert f"{partition_for(GroupId(GROUP), 50)} at " in done.stdout
    (aside,) = service.data_dir.glob("damaged-*")
    assert str(aside) in done.stdout
    assert aside.read_bytes() == whole[: (4_096 + last_byte) // 2]
    service.start()
    assert raw.fetch_offsets(service.bootstrap, GROUP)[TOPIC, 0] in range(1, 31)
    with raw.RawConnection(service.bootstrap) as connection:
        assert commit(connection, 31) == raw.NONE
    service.terminate()
    assert "nothing was done" in documented.run(repair, here).stdout


def test_lost_journals_stop_the_start_until_they_are_back(service: Service) -> None:
    journal = killed_after(service, 10)
    elsewhere = service.data_dir.with_name("elsewhere")
    journal.parent.rename(elsewhere)
    refused(service, str(journal), "the journal that was in use is missing")
    elsewhere.rename(journal.parent)
    service.start()
    assert raw.fetch_offsets(service.bootstrap, GROUP) == {(TOPIC, 0): 10}


def test_a_lost_partition_is_not_served_until_it_is_mended(service: Service) -> None:
    partition = partition_for(GroupId(GROUP), 50)
    with raw.RawConnection(service.bootstrap) as connection:
        for offset in range(1, 6):
            assert commit(connection, offset) == raw.NONE
    service.terminate()
    shutil.rmtree(service.data_dir / f"__consumer_offsets-{partition}")
    checked = groupkeeper("log", "check", "--data-dir", service.data_dir)
    assert checked.returncode == 1
    assert f"partition {partition} is damaged" in checked.stdout
    service.launch()
    wait_until(
        lambda: (
            service.http_status("/ready?strict=1") == 503 and "the directory is missing" in service.log_text()
        )
    )
    with raw.RawConnection(service.bootstrap) as connection:
        wait_until(lambda: raw.ask_offsets(connection, GROUP).error_code == 16, what="NOT_COORDINATOR")
        assert commit(connection, 6) == 16
    service.terminate()
    done = groupkeeper("log", "repair", "--execute", "--partition", partition, "--data-dir", service.data_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    assert groupkeeper("log", "check", "--data-dir", service.data_dir).returncode == 0
    service.start()
    with raw.RawConnection(service.bootstrap) as connection:
        assert commit(connection, 6) == raw.NONE


class Committer(threading.Thread):
    """Commits one offset after the other, and notes which of those that it sent after `gone` were acknowledged.

    Ends when the server does.
    """

    def __init__(self, bootstrap: str, group: str) -> None:
        super().__init__(daemon=True)
        self.gone = threading.Event()
        self.acknowledged = 0
        self.refused_after = 0
        self.late: list[int] = []
        self._group = group
        self._connection = raw.RawConnection(bootstrap)

    def run(self) -> None:
        offset = 0
        with suppress(ConnectionError, TimeoutError, OSError), self._connection as connection:
            while True:
                offset += 1
                was_gone = self.gone.is_set()
                code = commit(connection, offset, self._group)
                if code != raw.NONE:
                    self.refused_after += was_gone
                else:
                    self.acknowledged = offset
                    if was_gone:
                        self.late.append(offset)


@pytest.mark.parametrize("how", ["removed", "moved away"])
def test_nothing_is_acknowledged_without_the_data_directory(service: Service, how: str) -> None:
    committers = [Committer(service.bootstrap, f"{GROUP}-{n}") for n in range(4)]
    for each in committers:
        each.start()
    wait_until(lambda: min(each.acknowledged for each in committers) > 20, what="commits")
    if how == "removed":
        while service.data_dir.exists():  # the node makes files while this removes them
            shutil.rmtree(service.data_dir, ignore_errors=True)
    else:
        service.data_dir.rename(service.data_dir.with_name("moved"))
    for each in committers:
        each.gone.set()
    # `refused_after` counts requests that were sent after the removal had come to its end.
    wait_until(lambda: min(each.refused_after for each in committers) > 20, what="refusals")
    assert service.http_status("/ready?strict=1") == 503
    wait_until(lambda: "the journal was removed, or moved away" in service.log_text(), what="the log")
    assert not service.data_dir.exists(), "the node has made a new one"
    service.kill9()
    for each in committers:
        each.join(120)
        assert each.late == []
    if how == "moved away":
        service.data_dir.with_name("moved").rename(service.data_dir)
        service.start()
        for number, each in enumerate(committers):
            stored = raw.fetch_offsets(service.bootstrap, f"{GROUP}-{number}")[TOPIC, 0]
            assert stored >= each.acknowledged


def test_a_node_where_nobody_commits_notices_that_its_files_are_gone(service: Service) -> None:
    shutil.rmtree(service.data_dir / "journal")
    wait_until(lambda: service.http_status("/ready?strict=1") == 503, what="/ready to say so")
    wait_until(lambda: "the journal was removed, or moved away" in service.log_text(), what="the log")


@pytest.mark.process
def test_the_lost_journal_of_one_of_several_nodes_stops_the_start(tmp_path: Path) -> None:
    with closing(Nodes(tmp_path, 2, {**QUIET})) as nodes:
        nodes.start()
        raw.create_topic(nodes.address(1), TOPIC)
        journals = sorted(nodes.data_dir.glob("journal.*"))
        assert len(journals) == 2
        nodes.kill9()
        # Its workers end with it, and let the directory go.
        wait_until(lambda: "in use" not in groupkeeper("log", "check", "--data-dir", nodes.data_dir).stdout)
        shutil.rmtree(journals[1])
        nodes.launch()
        wait_until(lambda: "the journal that was in use is missing" in nodes.log_text())
        wait_until(lambda: str(journals[1]) in nodes.log_text(), what="the log")


@pytest.mark.parametrize("content", [None, b"{}"])
def test_a_lost_catalogue_stops_the_start_until_the_loss_is_accepted(
    documented: Documented, service: Service, content: bytes | None
) -> None:
    say, repair = documented.commands
    here = {"DIR": service.data_dir}
    killed_after(service, 10)  # what was committed is in the journal alone
    catalogue = service.data_dir / "catalogue.json"
    whole = catalogue.read_bytes()
    catalogue.unlink()
    if content is not None:
        catalogue.write_bytes(content)
    for _ in range(2):
        assert str(catalogue) in not_started(service)
    assert "nothing was changed" in documented.run(say, here, status=1).stdout
    assert (catalogue.read_bytes() if catalogue.exists() else None) == content
    assert "found 1 groups" in documented.run(repair, here).stdout
    asides = list(service.data_dir.glob("damaged-*"))
    assert [aside.read_bytes() for aside in asides] == ([] if content is None else [content])
    assert "nothing was done" in documented.run(repair, here).stdout
    service.start()
    assert raw.fetch_offsets(service.bootstrap, GROUP) == {(TOPIC, 0): 10}
    with raw.RawConnection(service.bootstrap) as connection:
        assert commit(connection, 11) == raw.NONE  # to a topic that is there again
    service.terminate()
    catalogue.write_bytes(whole)
    service.start()
    assert raw.fetch_offsets(service.bootstrap, GROUP) == {(TOPIC, 0): 11}


def test_a_new_catalogue_has_the_partitions_that_placed_the_groups(service: Service) -> None:
    killed_after(service, 1)
    (service.data_dir / "catalogue.json").unlink()
    repair = ("log", "repair", "--catalogue", "--execute", "--accept-loss", "--data-dir", service.data_dir)
    done = groupkeeper(*repair, extra={"GROUPKEEPER_OFFSETS_TOPIC_NUM_PARTITIONS": "7"})
    assert done.returncode == 1
    assert "is 7 the right number of partitions?" in done.stderr
    assert not (service.data_dir / "catalogue.json").exists()
