# SPDX-License-Identifier: Apache-2.0
"""DescribeGroups of 40,000 groups in one request."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import DescribeGroupsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    return [request(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(version=5, groups=names("g", 40_000)))]
