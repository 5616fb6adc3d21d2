# SPDX-License-Identifier: Apache-2.0
"""ListGroups, again and again."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import ListGroupsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    return [request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4))]
