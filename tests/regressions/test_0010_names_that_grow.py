# SPDX-License-Identifier: Apache-2.0
"""A name of 20,000 bytes that are no UTF-8 is read as one of 60,000, which no answer can hold.

One member with such a name kept everybody from listing groups, its leader from its assignment, and the rest of its
group from their answers.
"""

from pathlib import Path

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListGroupsRequest
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.groups import classic
from tests.support.log_lines import LogLines

GROWS = "G" * 20_000
LONGEST = "L" * 32_767


def bad(frame: bytes) -> bytes:
    """The frame with its longest name made of bytes that are no text."""
    assert GROWS.encode() in frame
    return frame.replace(GROWS.encode(), b"\xff" * len(GROWS))


JOINS = {
    "group": bad(requests.join(GROWS)),
    "group, without an id first": bad(requests.join(GROWS, version=3)),
    "instance": bad(requests.join("g", instance=GROWS)),
    "protocol": bad(requests.join("g", protocol=GROWS)),
    "protocol type": bad(requests.join("g", protocol_type=GROWS)),
    "instance without room for the rest of an id": requests.join("g", instance=LONGEST),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
async def test_a_member_that_cannot_be_told_of_is_refused(
    tmp_path: Path, lines: LogLines, join: bytes
) -> None:
    edge = Edge(tmp_path)
    client, other = edge.connect(), edge.connect()
    client.send(join)
    await settle()
    version = 3 if join is JOINS["group, without an id first"] else 9
    (frame,) = client.answers()
    assert requests.answer(ApiKey.JOIN_GROUP, version, frame).error_code == ErrorCode.INVALID_REQUEST
    assert list(edge.manager.current_groups()) == []
    for version in (2, 4):
        other.send(requests.request(ApiKey.LIST_GROUPS, version, ListGroupsRequest(states_filter=[])))
        (frame,) = other.answers()
        assert requests.answer(ApiKey.LIST_GROUPS, version, frame).groups == []
    assert lines.of("exception") == []


async def test_names_that_fit_are_taken(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    client = edge.connect()
    client.send(requests.join(LONGEST, version=3), requests.join("g", instance=LONGEST[:-37]))
    await settle()
    first, second = client.answers()
    assert requests.answer(ApiKey.JOIN_GROUP, 3, first).error_code == ErrorCode.NONE
    assert len(requests.answer(ApiKey.JOIN_GROUP, 9, second).member_id) == len(LONGEST)


async def test_an_answer_that_cannot_be_written_ends_its_own_connection_only(
    tmp_path: Path, lines: LogLines
) -> None:
    """However a name got in: those who are answered in the same step are answered."""
    edge = Edge(tmp_path)
    leader, follower = edge.connect(), edge.connect()
    leader.send(requests.join("g", version=3))
    await settle()
    first = requests.answer(ApiKey.JOIN_GROUP, 3, leader.answers()[0])
    follower.send(requests.join("g", version=3, metadata=b"f"))
    group = classic(edge.manager, "g")
    assert group is not None
    second = next(member for member_id, member in group.members.items() if member_id != first.member_id)
    second.group_instance_id = "\ufffd" * 20_000
    leader.send(requests.join("g", first.member_id, version=9))
    await settle()
    assert requests.answer(ApiKey.JOIN_GROUP, 3, follower.answers()[0]).error_code == ErrorCode.NONE
    assert leader.transport.closed  # it would have been told of the follower
    assert not follower.transport.closed
    assert len(lines.of("exception")) == 1
