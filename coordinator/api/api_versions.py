# SPDX-License-Identifier: Apache-2.0
"""The handler of ApiVersions v0-v5.

v1: throttle time. v3: flexible body (the header never is), client software name and version (KIP-511).
v4: features whose range starts at 0. v5: the cluster and the node that the client means (KIP-1242).

No features are offered. Kafka's `group.version` 1 stands for the consumer protocol of KIP-848 and
`transaction.version` 2 for transactions; with a node that names neither, clients use the classic protocol.
"""

import re
from functools import lru_cache
from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import ApiKey, ApiVersionRange, VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ApiVersionsRequest, ApiVersionsResponse, build_schema

SOFTWARE_FROM: Final = 3
MEANT_FROM: Final = 5
NO_NODE: Final = -1
"""The node id of a request that names no node."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(node: Node, request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    """Return every api and version that the node offers."""
    version = ctx.api_version
    if not is_valid(request, version):
        return error_response(request, ErrorCode.INVALID_REQUEST, version)
    if not is_for_this_node(request, node.cluster_id, node.node_id):
        return error_response(request, ErrorCode.REBOOTSTRAP_REQUIRED, version)
    return ApiVersionsResponse(version=version, api_keys=_versions_of(node.offers, version))


def is_valid(request: ApiVersionsRequest, version: int) -> bool:
    """Return whether the client names its software, and either both the cluster and the node or neither.

    The check is that of ApiVersionsRequest.isValid.
    """
    if version < SOFTWARE_FROM:
        return True
    software = request.client_software_name, request.client_software_version
    return all(map(_SOFTWARE.fullmatch, software)) and (request.cluster_id is None) == (
        request.node_id == NO_NODE
    )


def is_for_this_node(request: ApiVersionsRequest, cluster_id: str | None, node_id: int) -> bool:
    """Return whether the client means this node, or any node (KIP-1242).

    A `cluster_id` of None is not known yet, and matches every cluster id in a request.
    """
    if request.cluster_id is None:
        return True
    return request.node_id == node_id and cluster_id in (None, request.cluster_id)


def error_response(request: ApiVersionsRequest, error: ErrorCode, version: int) -> ApiVersionsResponse:
    """Return the error with an empty list of apis."""
    return ApiVersionsResponse(version=version, error_code=error, api_keys=[])


def unsupported_version_response(node: Node) -> ApiVersionsResponse:
    """Return UNSUPPORTED_VERSION, in version 0, with the versions of this api alone."""
    ours = tuple(offer for offer in node.offers if offer.key == ApiKey.API_VERSIONS)
    return ApiVersionsResponse(
        version=0, error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_versions_of(ours, 0)
    )


@lru_cache
def _versions_of(offers: tuple[ApiVersionRange, ...], version: int) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(
            version=version, api_key=offer.key, min_version=offer.min, max_version=offer.max
        )
        for offer in offers
    ]


API: Final = Api(
    build_schema(ApiVersionsRequest, ApiVersionsResponse),
    versions=VersionRange(0, 5),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=False,
    refuse_version=unsupported_version_response,
    short_answers=True,
)
