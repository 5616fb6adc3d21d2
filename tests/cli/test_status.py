# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper status` of a node, of workers that lack one, and of nothing."""

import os
import signal

import pytest

from tests.cli.conftest import Command
from tests.support.command import groupkeeper as run_command
from tests.support.service import serving
from tests.support.waiting import wait_until
from tests.workers.nodes import Nodes


@pytest.mark.process
def test_a_node_that_is_well(groupkeeper: Command, tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("node"), {}) as service:
        at = ("--node", f"127.0.0.1:{service.metrics_port}")
        wait_until(lambda: groupkeeper("status", *at).exit_code == 0, what="all partitions")
        shown = groupkeeper("status", *at)
        (found,) = groupkeeper("status", "--json", *at).json
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert [row for row in rows if row[:1] in (["READY"], ["ALL"])] == [
        ["READY", "yes"],
        ["ALL", "SERVED", "yes"],
    ]
    assert ["NODE", "READY", "PARTITIONS", "LOADING", "GROUPS", "DISK", "FREE"] in rows
    assert rows[-1][:2] == ["1", "yes"]
    assert (found["ready"], found["complete"], found["problems"], found["upstream"]) == (True, True, [], None)
    assert found["nodes"][0]["disk_size"] > found["nodes"][0]["disk_free"] > 0
    assert f"groupkeeper {found['version']}" in groupkeeper("--version").stdout


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_a_problem(tmp_path_factory: pytest.TempPathFactory) -> None:
    nodes = Nodes(tmp_path_factory.mktemp("nodes"), 2, {"worker.timeout.ms": 60_000})
    try:
        nodes.start()
        at = ("--node", f"127.0.0.1:{nodes.port + 8}")
        assert run_command("status", *at).returncode == 0
        pid = nodes.signal(2, signal.SIGSTOP)
        done = run_command("status", *at)
        os.kill(pid, signal.SIGCONT)
    finally:
        nodes.close()
    assert (done.returncode, done.stderr) == (1, "groupkeeper: 1 problem\n")
    assert done.stdout.endswith("\nPROBLEM\nnode 2: the node has not answered within 2 s\n")


def test_nothing_answers(groupkeeper: Command) -> None:
    shown = groupkeeper("status", "--node", "127.0.0.1:1")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert (
        shown.stderr
        == "groupkeeper: 127.0.0.1:1: no response from a node's metrics.listen: Connection refused\n"
    )
    assert groupkeeper("status", "--node", "nowhere").exit_code == 2
