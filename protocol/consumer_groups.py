# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe v0-v1 and ConsumerGroupHeartbeat v0-v1, which kafka-python lacks: groups of KIP-848.

Describe v1: the member's protocol (KIP-1099). Heartbeat v1: patterns of topics; clients make members' ids (KIP-1082).

What is in these messages is in their schemas; the stub beside this says it to mypy.
"""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which groups to describe."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Groups with their members, current and target assignments."""


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json="protocol.schemas"):
    """What a member of a group tells its coordinator."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json="protocol.schemas"):
    """The member's epoch and assignment, or an error."""
