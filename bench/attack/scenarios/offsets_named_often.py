# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch of 77 bytes that names a group with 10,000 offsets ten times."""

from bench.attack.frames import Size, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId


def frames(size: Size) -> list[bytes]:
    """One request."""
    groups = [hot.OffsetFetchRequestGroup(group_id=GroupId("big"), topics=None)] * 10
    return [request(ApiKey.OFFSET_FETCH, 8, hot.OffsetFetchRequest(groups=groups))]
