# SPDX-License-Identifier: Apache-2.0
"""LeaveGroup of as many members as a request may have, none of which is one."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId


def frames(size: Size) -> list[bytes]:
    """One request."""
    members = [hot.MemberIdentity(member_id=MemberId(name)) for name in names("member", 10_000)]
    return [request(ApiKey.LEAVE_GROUP, 4, hot.LeaveGroupRequest(group_id=GroupId("g0"), members=members))]
