# SPDX-License-Identifier: Apache-2.0
"""docs/maintenance.md step by step: its commands, on real processes, in directories of the test's own."""

import getpass
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.protocol.consumer.group import JoinGroupRequest, SyncGroupRequest

from bench.installed import PACKAGES
from bench.ports import free_ports
from coordinator.version import __version__
from tests.documented import STEPS
from tests.support.documented import Documented
from tests.support.missing import skip_or_fail
from tests.support.pages import PAGES
from tests.support.processes import REPOSITORY, ServerProcess, environment
from tests.support.raw import RawConnection, commit_offsets, create_topic, fetch_offsets, heartbeat

PAGE: Final = PAGES["docs/maintenance.md"]
PLACES: Final = re.compile(r"(?<![\w./:])/(?=(?:var/lib|backup|opt|tmp)/)")
CHOWN: Final = "chown --recursive groupkeeper: /var/lib/groupkeeper"
COPY: Final = "cp --archive /backup/groupkeeper/. /var/lib/groupkeeper"
OTHER_VERSION: Final = "9.9.9"
TOPIC: Final = "orders"


class Host:
    """A machine as the page knows it: its directories lie below `root`, and `systemctl` is played with a process."""

    def __init__(self, root: Path, documented: Documented) -> None:
        self.root = root
        self._documented = documented
        self.port, self.metrics_port = free_ports(2)
        self.data = root / "var/lib/groupkeeper"
        self.node: ServerProcess | None = None
        for directory in (self.data, root / "backup", root / "opt", root / "tmp"):
            directory.mkdir(parents=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def install(self, name: str, version: str) -> None:
        """A copy of the sources as /opt/NAME, which says that it is of this version."""
        tree = self.root / "opt" / name
        for package in PACKAGES:
            shutil.copytree(
                REPOSITORY / package, tree / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
            )
        module = tree / "coordinator" / "version.py"
        module.write_text(module.read_text().replace(f'"{__version__}"', f'"{version}"'))
        binary = tree / ".venv" / "bin" / "groupkeeper"
        binary.parent.mkdir(parents=True)
        binary.write_text(
            f'#!/bin/sh\nPYTHONPATH={tree} exec {sys.executable} -P -m coordinator.cli.main "$@"\n'
        )
        binary.chmod(0o755)

    def use(self, name: str) -> None:
        (self.root / "opt/groupkeeper").symlink_to(self.root / "opt" / name)

    def do(self, steps: str) -> None:
        """Run the commands of one part of the page, in order; each must succeed."""
        for command in STEPS[steps]:
            self.type(command)

    def type(self, command: str) -> None:
        """Run one command of the page."""
        words = command.split()
        if words[0] == "systemctl":
            self._systemctl(words[1], words[2:-1])
        else:
            self._run(command)
        if command in self._documented.commands:
            self._documented.line(command)

    def _systemctl(self, verb: str, flags: list[str]) -> None:
        if verb in ("stop", "disable"):
            assert verb == "stop" or flags == ["--now"]
            assert self.node is not None
            assert self.node.terminate() == 0
            self.node = None
        elif verb in ("start", "enable"):
            assert verb == "start" or flags == ["--now"]
            self.start()
        else:
            assert verb == "kill"
            assert self.node is not None
            (flag,) = flags
            self.node.send(signal.Signals[flag.removeprefix("--signal=")])

    def start(self) -> None:
        """As the unit does."""
        assert self.node is None
        binary = self.root / "opt/groupkeeper/.venv/bin/groupkeeper"
        settings = {
            "GROUPKEEPER_LISTEN": self.bootstrap,
            "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{self.metrics_port}",
        }
        command = [str(binary), "serve", "--data-dir", str(self.data)]
        self.node = ServerProcess(command, self.root / "log", env=environment(settings))

    def crash(self) -> None:
        assert self.node is not None
        self.node.kill9()
        self.node = None

    def _run(self, command: str) -> None:
        mapped = PLACES.sub(f"{self.root}/", command)
        for theirs, ours in {
            "127.0.0.1:9308": f"127.0.0.1:{self.metrics_port}",
            "groupkeeper: ": f"{getpass.getuser()}: ",  # only root may give a file to another user
        }.items():
            mapped = mapped.replace(theirs, ours)
        path = f"{self.root}/bin:{self.root}/opt/groupkeeper/.venv/bin:{environment()['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-c", mapped],
            capture_output=True,
            text=True,
            check=False,
            env=environment({"PATH": path}),
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def until_ready(self) -> None:
        self._run(STEPS["backup"][-1])

    def metrics(self) -> str:
        done = subprocess.run(
            ["curl", "--silent", f"http://127.0.0.1:{self.metrics_port}/metrics"],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def close(self) -> None:
        if self.node is not None:
            self.node.kill9()


@pytest.fixture
def host(documented: Documented, tmp_path: Path) -> Iterator[Host]:
    """A host that serves, with a group that has committed."""
    if shutil.which("curl") is None:
        skip_or_fail("curl is not installed")
    host = Host(tmp_path / "host", documented)
    host.install("groupkeeper-OLD", __version__)
    host.use("groupkeeper-OLD")
    try:
        host.start()
        host.until_ready()
        create_topic(host.bootstrap, TOPIC, 2)
        commit(host, 10)
        yield host
    finally:
        host.close()


def commit(host: Host, offset: int) -> None:
    commit_offsets(host.bootstrap, "standalone", TOPIC, {0: offset})


def committed(host: Host) -> int:
    return fetch_offsets(host.bootstrap, "standalone")[TOPIC, 0]


def member_of(host: Host) -> Any:
    """Join a group alone, and be stable."""
    with RawConnection(host.bootstrap) as connection:
        joined = connection.call(
            JoinGroupRequest(
                group_id="workers",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id="",
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            3,
        )
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=joined.member_id, assignment=b"all"
        )
        synced = connection.call(
            SyncGroupRequest(
                group_id="workers",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[assignment],
            ),
            2,
        )
    assert (joined.error_code, synced.error_code) == (0, 0)
    return joined


def assert_still_in(host: Host, joined: Any) -> None:
    assert heartbeat(host.bootstrap, "workers", joined.generation_id, joined.member_id) == 0


def test_every_step_of_the_page_belongs_to_a_test() -> None:
    assert set(STEPS) == {
        *("backup", "check", "freeze", "restore", "upgrade", "rollback", "leave", "arrive"),
    }
    assert PAGE.count("```sh") == len(STEPS)


@pytest.mark.slow
def test_a_backup_can_be_read_and_restored_with_offsets_of_its_time(host: Host) -> None:
    joined = member_of(host)
    host.do("backup")
    assert_still_in(host, joined)
    host.do("check")
    commit(host, 20)
    host.do("restore")
    host.type(CHOWN)
    assert committed(host) == 10
    assert_still_in(host, joined)
    commit(host, 30)
    host.crash()
    host.start()
    host.until_ready()
    assert committed(host) == 30
    assert list((host.root / "backup/before-restore").glob("__consumer_offsets-*"))


@pytest.mark.slow
def test_a_copy_of_a_node_that_stands_still_has_all_that_it_acknowledged(host: Host) -> None:
    for offset in range(11, 200):
        commit(host, offset)
    host.do("freeze")
    commit(host, 500)
    assert host.node is not None
    for command in STEPS["restore"]:
        host.type(COPY if command.startswith("tar ") else command)
    assert committed(host) == 199


@pytest.mark.slow
def test_an_upgrade_keeps_everything_and_the_way_back_leads_to_the_backup(host: Host) -> None:
    host.install("groupkeeper-NEW", OTHER_VERSION)
    joined = member_of(host)
    commit(host, 11)
    host.do("upgrade")
    assert f'version="{OTHER_VERSION}"' in host.metrics()
    assert committed(host) == 11
    assert_still_in(host, joined)
    commit(host, 12)
    host.do("rollback")
    assert f'version="{__version__}"' in host.metrics()
    assert committed(host) == 11
    assert_still_in(host, joined)
    assert list((host.root / "backup/after-upgrade").glob("__consumer_offsets-*"))


@pytest.mark.slow
def test_an_upgrade_in_which_the_stop_was_cut_off_loses_nothing(host: Host) -> None:
    host.install("groupkeeper-NEW", OTHER_VERSION)
    commit(host, 11)
    host.crash()  # as systemd does after TimeoutStopSec
    (host.root / "opt/groupkeeper").unlink()
    host.use("groupkeeper-NEW")
    host.start()
    host.until_ready()
    assert committed(host) == 11


@pytest.mark.slow
def test_a_node_moves_to_another_host_with_its_members_and_offsets(
    host: Host, documented: Documented, tmp_path: Path
) -> None:
    new = Host(tmp_path / "new", documented)
    new.install("groupkeeper-OLD", __version__)
    new.use("groupkeeper-OLD")
    scp = host.root / "bin" / "scp"
    scp.parent.mkdir()
    scp.write_text(f'#!/bin/sh\nexec cp "$1" "{new.root}${{2#*:}}"\n')
    scp.chmod(0o755)
    joined = member_of(host)
    commit(host, 11)
    try:
        host.do("leave")
        assert host.node is None
        new.do("arrive")
        assert committed(new) == 11
        assert_still_in(new, joined)
        commit(new, 12)
        assert committed(new) == 12
    finally:
        new.close()
