# SPDX-License-Identifier: Apache-2.0
"""ApiVersions v0-v4.

v1: throttle time. v3: flexible body (the header never is), client software name and version (KIP-511).
v4: features whose range starts at 0.

No features are told. Kafka's `group.version` 1 stands for the consumer protocol of KIP-848 and
`transaction.version` 2 for transactions; a node that names neither is talked to in the classic protocol.
"""

import re
from functools import lru_cache
from typing import Any, Final

from coordinator.api import produce
from coordinator.api.context import RequestContext
from coordinator.node import Node
from protocol.apis import SUPPORTED, ApiKey
from protocol.errors import ErrorCode
from protocol.messages import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_FROM: Final = 3
TOLD_FROM: Final = {ApiKey.PRODUCE: produce.TOLD_FROM}

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(node: Node, request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    """Tell every api and version that is served."""
    version = ctx.api_version
    if version >= SOFTWARE_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return error_response(request, ErrorCode.INVALID_REQUEST, version)
    if version >= SOFTWARE_FROM:
        ctx.sink.client_software = request.client_software_name
    return ApiVersionsResponse(version=version, api_keys=_all_served(version))


def error_response(request: ApiVersionsRequest, error: ErrorCode, version: int) -> ApiVersionsResponse:
    """An error and an empty list; for UNSUPPORTED_VERSION, which is told in v0, the versions of this api."""
    if error is ErrorCode.UNSUPPORTED_VERSION:
        return ApiVersionsResponse(version=0, error_code=error, api_keys=[_served(ApiKey.API_VERSIONS, 0)])
    return ApiVersionsResponse(version=version, error_code=error, api_keys=[])


@lru_cache
def _all_served(version: int) -> list[Any]:
    return [_served(key, version) for key in sorted(SUPPORTED)]


def _served(key: ApiKey, version: int) -> Any:
    low, high = SUPPORTED[key]
    low = TOLD_FROM.get(key, low)
    return ApiVersionsResponse.ApiVersion(
        version=version, api_key=int(key), min_version=low, max_version=high
    )
