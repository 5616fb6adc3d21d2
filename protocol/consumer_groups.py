# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe v0-v1, which kafka-python lacks: groups of KIP-848. v1: the member's protocol (KIP-1099).

What is in these messages is in their schemas; the stub beside this says it to mypy.
"""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which groups to describe."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Groups with their members, current and target assignments."""
