# SPDX-License-Identifier: Apache-2.0
"""Connections that close at once, few of them here: all of them are closed, and each server has its line."""

import pytest

from bench import cli
from bench.closing import LOOPS, SERVERS


@pytest.mark.process
@pytest.mark.slow
def test_each_loop_and_server_has_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["closing", "--connections", "200", "--rounds", "1"]) == 0
    _, _, *lines = capfd.readouterr().out.splitlines()
    assert [tuple(line.split()[:2]) for line in lines] == [
        (loop, server) for loop in LOOPS for server in SERVERS
    ]
