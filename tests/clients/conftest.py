# SPDX-License-Identifier: Apache-2.0
"""Every scenario runs with every client library."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.group import Group, Groups
from tests.clients.member import CLIENTS, Client
from tests.kafka.java_shell import java_shell
from tests.support.target import Target, own_target, target

__all__ = ["java_shell", "own_target", "target"]


@pytest.fixture(params=CLIENTS, ids=lambda client: str(client.name))
def client(request: pytest.FixtureRequest) -> Client:
    """One of the client libraries."""
    chosen = request.param
    assert isinstance(chosen, Client)
    return chosen


@pytest.fixture
def groups(client: Client, tmp_path: Path) -> Iterator[Groups]:
    """Makes groups; their members end with the test."""
    makes = Groups(client, tmp_path)
    yield makes
    makes.close()


@pytest.fixture
def group(groups: Groups, target: Target) -> Group:
    """A fresh group on the shared server."""
    return groups.make(target.bootstrap)
