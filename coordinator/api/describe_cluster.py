# SPDX-License-Identifier: Apache-2.0
"""The handler of DescribeCluster v0-v2. v1: endpoint types (KIP-919). v2: fenced brokers (KIP-1073); always none."""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.authorization.authorizer import authorized_operations
from coordinator.authorization.permissions import CLUSTER_NAME, ResourceType
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeClusterRequest, DescribeClusterResponse, build_schema

ENDPOINT_TYPES_FROM: Final = 1
BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(node: Node, request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """Return the nodes of this cluster."""
    version = ctx.api_version
    endpoint_type = request.endpoint_type if version >= ENDPOINT_TYPES_FROM else BROKERS
    if endpoint_type == CONTROLLERS:
        return _refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "This is an endpoint for brokers, not for controllers.",
            version,
        )
    if endpoint_type != BROKERS:
        return _refusal(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}", version
        )
    brokers = [
        DescribeClusterResponse.DescribeClusterBroker(
            version=version, broker_id=broker.node_id, host=broker.host, port=broker.port
        )
        for broker in node.cluster.brokers
    ]
    return DescribeClusterResponse(
        version=version,
        endpoint_type=BROKERS,
        cluster_id=node.cluster_id,
        controller_id=node.cluster.controller_id,
        brokers=brokers,
        authorized_operations=authorized_operations(
            node.authorizer,
            ResourceType.CLUSTER,
            CLUSTER_NAME,
            asked=request.include_cluster_authorized_operations,
        ),
    )


def error_response(
    request: DescribeClusterRequest, error: ErrorCode, version: int
) -> DescribeClusterResponse:
    """Return the refusal of the whole request."""
    return _refusal(error, None, version)


def _refusal(error: ErrorCode, message: str | None, version: int) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        version=version,
        error_code=error,
        error_message=message,
        endpoint_type=BROKERS,
        cluster_id="",
        brokers=[],
    )


API: Final = Api(
    build_schema(DescribeClusterRequest, DescribeClusterResponse),
    versions=VersionRange(0, 2),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=False,
)
