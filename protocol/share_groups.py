# SPDX-License-Identifier: Apache-2.0
"""ShareGroupDescribe v0-v1, which kafka-python lacks: share groups (KIP-932). v0: Kafka 4.0, the same fields.

What is in these messages is in their schemas; the stub beside this says it to mypy.
"""

from kafka.protocol.api_message import ApiMessage


class ShareGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which groups to describe."""


class ShareGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Groups with their members and assignments."""
