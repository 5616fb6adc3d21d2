# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupDescribe v0, which kafka-python lacks: groups of Kafka Streams (KIP-1071).

v1 adds what is not asked for here, the description of the topology (KIP-1331). What is in these messages is in their
schemas; the stub beside this says it to mypy.
"""

from kafka.protocol.api_message import ApiMessage


class StreamsGroupDescribeRequest(ApiMessage, load_json="protocol.schemas"):
    """Which groups to describe."""


class StreamsGroupDescribeResponse(ApiMessage, load_json="protocol.schemas"):
    """Groups with their topology, members, current and target assignments."""
