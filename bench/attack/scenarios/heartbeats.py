# SPDX-License-Identifier: Apache-2.0
"""Heartbeats to groups that are not there, 20,000 of them at once."""

from bench.attack.frames import Size, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId


def frames(size: Size) -> list[bytes]:
    """All requests."""
    beat = hot.HeartbeatRequest(group_id=GroupId("nobody's"), generation_id=1, member_id=MemberId("m"))
    return [request(ApiKey.HEARTBEAT, 4, beat)] * 20_000
