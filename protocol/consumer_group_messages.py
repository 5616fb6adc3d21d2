# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe v0-v1 and ConsumerGroupHeartbeat v0-v1, which kafka-python lacks: groups of KIP-848.

Describe v1 adds the member's protocol (KIP-1099), Heartbeat v1 topic patterns and ids made by clients (KIP-1082).

The fields of these messages are in their schemas, and for mypy in the stub of this module.
"""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """The ids of the groups to describe."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """The groups with their members, current and target assignments."""


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json="protocol.schemas"):
    """The member id and epoch that a member sends to its coordinator."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json="protocol.schemas"):
    """The member's epoch and assignment, or an error."""
