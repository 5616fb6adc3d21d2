# SPDX-License-Identifier: Apache-2.0
"""The private api CloseGroup v0: reports whether a group can be given back, and closes it to changes until then."""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.migration.private_requests import CloseGroupStep
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.private_messages import CloseGroupRequest, CloseGroupResponse


def handle(node: Node, request: CloseGroupRequest, ctx: RequestContext) -> CloseGroupResponse:
    """Report whether a group could be given back, close it, or open it again."""
    adoptions, group_id, step = node.group_access.adoptions, request.group_id, request.step
    if step in (CloseGroupStep.ASK, CloseGroupStep.CLOSE):
        error = adoptions.check_give_back(ctx, group_id, close=step == CloseGroupStep.CLOSE)
    elif step == CloseGroupStep.REOPEN:
        error = adoptions.reopen(group_id)
    else:
        error = ErrorCode.INVALID_REQUEST
    return error_response(request, error, ctx.api_version)


def error_response(request: CloseGroupRequest, error: ErrorCode, version: int) -> CloseGroupResponse:
    """Return the response, which has only an error."""
    return CloseGroupResponse(version=version, error_code=int(error))


API: Final = Api(
    build_schema(CloseGroupRequest, CloseGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=True,
)
