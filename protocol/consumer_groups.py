# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe v0-v1, which kafka-python lacks: groups of KIP-848. v1: the member's protocol (KIP-1099)."""

from typing import Any

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which groups to describe."""

    group_ids: list[str]
    include_authorized_operations: bool


class ConsumerGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Groups with their members, current and target assignments."""

    DescribedGroup: Any
    groups: list[Any]
