# SPDX-License-Identifier: Apache-2.0
"""`make test JOBS=N`: processes that share the tests do not get into each other's way."""

from itertools import pairwise

import pytest

from tests.support.ports import free_port_run, free_ports


def test_processes_that_share_the_tests_take_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    taken: list[set[int]] = []
    for number in range(3):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        first = free_port_run(16)
        taken.append({*free_ports(300), *range(first, first + 16)})
    bounds = [(min(ports), max(ports)) for ports in taken]
    assert bounds == sorted(bounds)
    assert all(before[1] < after[0] for before, after in pairwise(bounds)), bounds
