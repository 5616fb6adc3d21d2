# SPDX-License-Identifier: Apache-2.0
"""JoinGroup of a member with 1,000 protocols, and of one with megabytes of metadata, which come and go."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId

INSTANCE = "attacker"


def frames(size: Size) -> list[bytes]:
    """Each joins as a static member, so that its group does not grow, and leaves."""
    many = [hot.JoinGroupRequestProtocol(name=name, metadata=b"topics") for name in names("p", 1_000)]
    long = [hot.JoinGroupRequestProtocol(name="range", metadata=bytes(400_000))]
    return [frame for protocols in (many, long) for frame in (_join(protocols), _leave())]


def _join(protocols: list[hot.JoinGroupRequestProtocol]) -> bytes:
    message = hot.JoinGroupRequest(
        group_id=GroupId("large"),
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id=INSTANCE,
        protocol_type="consumer",
        protocols=protocols,
    )
    return request(ApiKey.JOIN_GROUP, 7, message)


def _leave() -> bytes:
    members = [hot.MemberIdentity(member_id=MemberId(""), group_instance_id=INSTANCE)]
    return request(ApiKey.LEAVE_GROUP, 4, hot.LeaveGroupRequest(group_id=GroupId("large"), members=members))
