# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupDescribe v0 (KIP-1071) and ShareGroupDescribe v0-v1 (KIP-932), which kafka-python lacks.

The fields of these messages are in their schemas; the stub of this module has the ones that are read, for mypy.
"""

from kafka.protocol.api_message import ApiMessage


class StreamsGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """The ids of the streams groups to describe."""


class StreamsGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """The streams groups with their members, topology, current and target assignments."""


class ShareGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """The ids of the share groups to describe."""


class ShareGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """The share groups with their members and assignments."""
