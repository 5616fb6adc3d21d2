# SPDX-License-Identifier: Apache-2.0
"""SyncGroup with as many assignments as a request may have, and with one of several megabytes."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, MemberId


def frames(size: Size) -> list[bytes]:
    """Two requests of somebody who is no member."""
    many = [
        hot.SyncGroupRequestAssignment(MemberId(name), b"some partitions") for name in names("member", 49_000)
    ]
    long = [hot.SyncGroupRequestAssignment(MemberId("member"), bytes(4_000_000))]
    return [
        request(
            ApiKey.SYNC_GROUP,
            4,
            hot.SyncGroupRequest(GroupId("g0"), 1, MemberId("member"), assignments=assignments),
        )
        for assignments in (many, long)
    ]
