# SPDX-License-Identifier: Apache-2.0
"""The client of `adopt` and `give-back` against nodes that are late, not ready, or of another user."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.errors import CommandError
from coordinator.cli.moving.commands import LOCK_FILE
from coordinator.cli.moving.private_nodes_client import PrivateNodes
from coordinator.migration.model import Ownership
from coordinator.runtime.sockets import private_socket_path
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FindCoordinatorResponse, ListGroupsResponse
from protocol.newtypes import GroupId
from protocol.private_messages import AdoptGroupResponse
from tests.cli.conftest import Command
from tests.cli.fake import FakeNode

GROUP = GroupId("g")
NODE = 7
OWNED = AdoptGroupResponse(error_code=0, adopted=True, confirmed_absent=False, epoch=3, asked_ms=1, taken=-1)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    """The only node of `tmp_path`, which coordinates the group and has taken it over."""
    path = private_socket_path(tmp_path, NODE)
    path.parent.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.fspath(path))
    listener.listen()
    with FakeNode(listener=listener) as fake:
        fake.answers[ApiKey.FIND_COORDINATOR] = found
        fake.answers[ApiKey.ADOPT_GROUP] = lambda _request, _version: OWNED
        yield fake


def found(_request: Any, version: int) -> FindCoordinatorResponse:
    kind = FindCoordinatorResponse.Coordinator
    row = kind(version=version, key=GROUP, node_id=NODE, host="h", port=1, error_code=0, error_message=None)
    return FindCoordinatorResponse(version=version, coordinators=[row])


def find_ownership(nodes: PrivateNodes) -> Ownership:
    return asyncio.run(nodes.find_ownership(GROUP))


def test_a_late_answer_is_taken_for_no_other(node: FakeNode, tmp_path: Path) -> None:
    may_answer = threading.Event()

    def late(_request: Any, _version: int) -> AdoptGroupResponse:
        may_answer.wait()
        return AdoptGroupResponse(
            error_code=0, adopted=False, confirmed_absent=False, epoch=2, asked_ms=1, taken=-1
        )

    timely, node.answers[ApiKey.ADOPT_GROUP] = node.answers[ApiKey.ADOPT_GROUP], late
    with PrivateNodes(tmp_path, 0.2) as nodes:
        with pytest.raises(CommandError, match=r"lost the connection to .*7\.sock: it took too long"):
            find_ownership(nodes)
        may_answer.set()
        node.answers[ApiKey.ADOPT_GROUP] = timely
        assert find_ownership(nodes).epoch == 3


def test_a_connection_that_was_lost_is_opened_again(node: FakeNode, tmp_path: Path) -> None:
    with PrivateNodes(tmp_path, 10.0) as nodes:
        timely, node.answers[ApiKey.ADOPT_GROUP] = node.answers[ApiKey.ADOPT_GROUP], lambda *_: None
        with pytest.raises(CommandError, match=r"lost the connection to .*7\.sock: the server closed it"):
            find_ownership(nodes)
        node.answers[ApiKey.ADOPT_GROUP] = timely
        assert find_ownership(nodes).epoch == 3
        assert node.count(ApiKey.API_VERSIONS) == 2


def test_groups_are_listed_once_all_partitions_are_loaded(node: FakeNode, tmp_path: Path) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

    def listed(_request: Any, version: int) -> ListGroupsResponse:
        kind = ListGroupsResponse.ListedGroup
        row = kind(
            version=version, group_id=GROUP, protocol_type="", group_state="Empty", group_type="classic"
        )
        return ListGroupsResponse(version=version, error_code=codes.pop(0), groups=[row])

    node.answers[ApiKey.LIST_GROUPS] = listed
    with PrivateNodes(tmp_path, 10.0) as nodes:
        assert asyncio.run(nodes.list_groups()) == [GROUP]
    assert not codes


def test_a_lock_that_cannot_be_opened_is_one_line(groupkeeper: Command, tmp_path: Path) -> None:
    lock = private_socket_path(tmp_path, NODE).parent / LOCK_FILE
    lock.mkdir(parents=True)
    gateway = ("--data-dir", str(tmp_path), "--set", "upstream.bootstrap.servers=127.0.0.1:1")
    ran = groupkeeper("give-back", "--group", GROUP, *gateway)
    assert ran == (1, "", f"groupkeeper: {lock}: Is a directory\n")
