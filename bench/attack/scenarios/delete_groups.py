# SPDX-License-Identifier: Apache-2.0
"""DeleteGroups of 40,000 groups in one request: the first time, all of them are there."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import DeleteGroupsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    return [request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(version=2, groups_names=names("g", 40_000)))]
