# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupHeartbeat v0-v1: offered, and refused. v1: patterns of topics; clients make members' ids (KIP-1082).

Groups of KIP-848 are not coordinated here. The api is offered because librdkafka with `group.protocol=consumer` waits
for ever, without an error, for a coordinator that offers it.
"""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.consumer_group_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema


def handle(
    node: Node, request: ConsumerGroupHeartbeatRequest, ctx: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """Refuse the heartbeat, as Kafka does if `group.version` is 0 (KafkaApis.handleConsumerGroupHeartbeat)."""
    return error_response(request, ErrorCode.UNSUPPORTED_VERSION, ctx.api_version)


def error_response(
    request: ConsumerGroupHeartbeatRequest, error: ErrorCode, version: int
) -> ConsumerGroupHeartbeatResponse:
    """Return the refusal of a heartbeat."""
    return ConsumerGroupHeartbeatResponse(version=version, error_code=int(error))


API: Final = Api(
    build_schema(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
    versions=VersionRange(0, 1),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
)
