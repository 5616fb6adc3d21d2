# SPDX-License-Identifier: Apache-2.0
"""Ports are given out once, in a process and among processes, and only where nothing listens."""

import socket
import subprocess
import sys
from itertools import pairwise

import pytest

from bench.ports import BROKERS, HOST, SERVERS, free_port_run, free_ports
from tests.support.processes import REPOSITORY, environment

pytestmark = pytest.mark.process

ASKING = """
import sys
from bench.ports import free_port_run, free_ports
first = free_port_run(16)
print(*free_ports(100), *range(first, first + 16), flush=True)
sys.stdin.read()
"""
"""Prints ports and lives on until its input ends."""


def test_processes_that_share_the_tests_are_given_different_ports() -> None:
    command = [sys.executable, "-c", ASKING]
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=environment(),
        )
        for _ in range(3)
    ]
    given = [free_ports(100)]
    for process in running:
        assert process.stdout is not None
        given.append([int(port) for port in process.stdout.readline().split()])
    for process in running:
        process.communicate()
        assert process.returncode == 0
    given.append(free_ports(100))  # what ended processes had is not given out again soon

    ports = [port for each in given for port in each]
    assert len(ports) == 548
    assert len(set(ports)) == len(ports)


def test_ports_in_a_row_and_a_port_that_something_listens_on() -> None:
    ended = [sys.executable, "-c", "from bench.ports import free_port_run; print(free_port_run(10))"]
    first = int(subprocess.check_output(ended, cwd=REPOSITORY, env=environment()))
    few = range(first, first + 10)
    with socket.create_server((HOST, first + 4)):
        assert free_port_run(5, few) == first + 5
        with pytest.raises(AssertionError, match="no 5 free ports in a row"):
            free_port_run(5, few)
        assert sorted(free_ports(4, few)) == [first, first + 1, first + 2, first + 3]
        with pytest.raises(AssertionError, match="no 1 free ports"):
            free_ports(1, few)


def test_a_server_of_ours_is_never_among_the_ports_that_a_gateway_reserves_for_brokers() -> None:
    assert BROKERS.stop + 1_000 <= SERVERS.start
    assert all(one.stop <= other.start for one, other in pairwise([BROKERS, SERVERS]))
