# SPDX-License-Identifier: Apache-2.0
"""Starts that cannot be: one line that says why, and no process that stays."""

import re
import socket
import subprocess
from pathlib import Path

import pytest

from bench.ports import free_port_run
from tests.support.command import groupkeeper
from tests.workers.nodes import is_gone

pytestmark = pytest.mark.process


def serve(data_dir: Path | str, listen: str, *settings: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `groupkeeper serve` with two workers until it ends by itself."""
    flags = [flag for setting in ("workers=2", "metrics.listen=", *settings) for flag in ("--set", setting)]
    return groupkeeper("serve", "--listen", listen, "--data-dir", data_dir, *flags, cwd=cwd)


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    return ended.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_port_that_is_taken_stops_all_workers_and_leaves_a_clean_directory(tmp_path: Path) -> None:
    port = free_port_run(2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        ended = serve("data", f"127.0.0.1:{port}", "log.level=debug", cwd=tmp_path)
    assert ended.returncode == 1
    assert last_line(ended) == (
        f"groupkeeper: worker 2: listen: cannot listen on 127.0.0.1:{port + 1}: Address already in use"
    )
    pids = [int(pid) for pid in re.findall(r'"started a worker".*?"pid":(\d+)', ended.stderr)]
    assert len(pids) == 2
    assert all(map(is_gone, pids))
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert not list((tmp_path / "data").glob("journal*"))


def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    ended = serve("x" * 100, "127.0.0.1:0", cwd=tmp_path)
    assert ended.returncode == 1
    assert last_line(ended).endswith(
        "control.sock: a unix socket's path has at most 103 bytes; choose a shorter data.dir"
    )


def test_ports_beyond_the_last_one_are_refused_at_once(tmp_path: Path) -> None:
    ended = serve("data", "127.0.0.1:65535", cwd=tmp_path)
    assert ended.returncode == 2
    assert last_line(ended) == (
        "groupkeeper: listen = 127.0.0.1:65535 (--listen) leaves no ports for workers = 2 (--set)"
    )
    assert not (tmp_path / "data").exists()


def test_a_damaged_file_of_leaders_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "leaders.json").write_text("{")
    ended = serve("data", "127.0.0.1:0", cwd=tmp_path)
    assert ended.returncode == 1
    assert last_line(ended).startswith("groupkeeper: data/leaders.json: ")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateways_directory_is_not_served_without_its_cluster(tmp_path: Path, workers: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "upstream.json").write_text('{"version": 1, "cluster_id": "5L6g3nShT-eMCtK--X86sw"}')
    ended = serve("data", "127.0.0.1:0", f"workers={workers}", cwd=tmp_path)
    assert ended.returncode == 1
    assert last_line(ended) == (
        "groupkeeper: data/upstream.json: the groups here are those of a Kafka cluster, and upstream.bootstrap.servers "
        "is not set: set it, or name another data.dir (docs/gateway.md describes how to go on without the cluster)"
    )
    assert {file.name for file in data.iterdir()} <= {"upstream.json", ".lock"}
