# SPDX-License-Identifier: Apache-2.0
"""5,000 JoinGroups at once, each of which makes a group."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId


def frames(size: Size) -> list[bytes]:
    """All requests."""
    return [_join(GroupId(name)) for name in names("made", 5_000)]


def _join(group: GroupId) -> bytes:
    protocols = [hot.JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = hot.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=MemberId(""),
        group_instance_id=None,
        protocol_type="consumer",
        protocols=protocols,
        reason=None,
    )
    return request(ApiKey.JOIN_GROUP, 3, join)
