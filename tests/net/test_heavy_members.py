# SPDX-License-Identifier: Apache-2.0
"""The answer to a leader whose members have megabytes of metadata is made in steps, and is the same as in one piece."""

from pathlib import Path
from typing import Final

import pytest

from protocol.apis import ApiKey
from protocol.message_codecs import find_message_codec
from tests.net import requests
from tests.net.edge import Client, Edge, settle, turns_until_answered

A_STEP_A_TURN: Final = 0
MEMBERS: Final = 4
METADATA_BYTES: Final = 400_000


def metadata(number: int) -> bytes:
    return bytes([number]) * METADATA_BYTES


async def heavy(edge: Edge, version: int) -> tuple[Client, Client, bytes]:
    """A leader that was alone so far, the first member that waits for it, and the frame with which it rejoins."""
    clients = [edge.connect() for _ in range(MEMBERS)]
    static = version >= 5
    joins = [
        requests.join(
            "g", version=version, metadata=metadata(number), instance=f"i-{number}" if static else None
        )
        for number in range(MEMBERS)
    ]
    clients[0].send(joins[0])
    _, frame = await turns_until_answered(clients[0])
    joined = requests.answer(ApiKey.JOIN_GROUP, version, frame)
    for client, join in zip(clients[1:], joins[1:], strict=True):
        client.send(join)
    await settle()
    rejoin = requests.join(
        "g",
        joined.member_id,
        2,
        version=version,
        metadata=metadata(0),
        instance="i-0" if static else None,
    )
    return clients[0], clients[1], rejoin


@pytest.mark.parametrize("version", [0, 1, 2, 3, 5, 6, 7, 8, 9])
async def test_it_is_what_one_piece_would_be(tmp_path: Path, version: int) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=0)
    leader, _, rejoin = await heavy(edge, version)
    leader.send(rejoin, requests.api_versions(3))
    await settle()
    frame, behind = leader.answers()
    joined = requests.answer(ApiKey.JOIN_GROUP, version, frame)
    assert (frame[:4], behind[:4]) == (b"\0\0\0\2", b"\0\0\0\3")
    assert sorted(member.metadata[0] for member in joined.members) == list(range(MEMBERS))
    assert {len(member.metadata) for member in joined.members} == {METADATA_BYTES}
    codec = find_message_codec(ApiKey.JOIN_GROUP, version)
    assert codec.encode_response(joined) == frame[5 if codec.flexible else 4 :]
    assert edge.budget.total_bytes == 0


async def test_others_are_served_between_and_a_leader_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=0)
    leader, follower, rejoin = await heavy(edge, 3)
    leader.send(rejoin)
    await turns_until_answered(follower)  # the generation is there
    follower.send(requests.api_versions())
    await turns_until_answered(follower)
    assert leader.answers() == []
    await leader.drop()
    assert leader.answers() == []
    assert edge.budget.total_bytes == 0
