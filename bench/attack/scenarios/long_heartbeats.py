# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of 100 MB, nearly all of them behind the end of the message."""

from bench.attack.frames import Size, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId


def frames(size: Size) -> list[bytes]:
    """One request."""
    frame = request(ApiKey.HEARTBEAT, 3, hot.HeartbeatRequest(GroupId("g"), 1, MemberId("m")))
    longer = 100 * (1 << 20) - 4
    return [longer.to_bytes(4, "big") + frame[4:] + bytes(longer - len(frame) + 4)]
