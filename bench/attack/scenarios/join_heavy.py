# SPDX-License-Identifier: Apache-2.0
"""JoinGroup of new members with a megabyte of metadata each, all into one group, whose leader hears of all of them."""

from bench.attack.frames import Size, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId

METADATA_BYTES = 1_000_000
REBALANCE_MS = 300


def frames(size: Size) -> list[bytes]:
    """Each is a member of its own, which never syncs and is put out at the end of the next rebalance."""
    message = hot.JoinGroupRequest(
        group_id=GroupId("heavy"),
        session_timeout_ms=6_000,
        rebalance_timeout_ms=REBALANCE_MS,
        protocol_type="consumer",
        protocols=[hot.JoinGroupRequestProtocol(name="range", metadata=bytes(METADATA_BYTES))],
    )
    return [request(ApiKey.JOIN_GROUP, 3, message)]
