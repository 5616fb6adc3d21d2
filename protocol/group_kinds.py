# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupDescribe v0 (KIP-1071) and ShareGroupDescribe v0-v1 (KIP-932), which kafka-python lacks.

What is in these messages is in their schemas. The stub beside this tells mypy of what is read of them.
"""

from kafka.protocol.api_message import ApiMessage


class StreamsGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which streams groups to describe."""


class StreamsGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Streams groups with their members, topology, current and target assignments."""


class ShareGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which share groups to describe."""


class ShareGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Share groups with their members and assignments."""
