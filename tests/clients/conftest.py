# SPDX-License-Identifier: Apache-2.0
"""Every scenario runs with every client library."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.group import Group
from tests.clients.member import CLIENTS, Client
from tests.support.target import Target, own_target, target

__all__ = ["own_target", "target"]


@pytest.fixture(params=CLIENTS, ids=lambda client: str(client.name))
def client(request: pytest.FixtureRequest) -> Client:
    """One of the client libraries."""
    chosen = request.param
    assert isinstance(chosen, Client)
    return chosen


@pytest.fixture
def group_on(client: Client, tmp_path: Path) -> Iterator[Callable[[str], Group]]:
    """Make groups on a server of the test's choice; their members end with the test."""
    made: list[Group] = []

    def make(bootstrap: str) -> Group:
        made.append(Group(client, bootstrap, tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def group(group_on: Callable[[str], Group], target: Target) -> Group:
    """A fresh group on the shared server."""
    return group_on(target.bootstrap)
