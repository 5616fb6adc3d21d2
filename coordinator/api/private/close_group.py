# SPDX-License-Identifier: Apache-2.0
"""CloseGroup v0, one of our own: whether a group could go to the cluster, and keeping clients from changing it then."""

from enum import IntEnum
from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.messages import schema_of
from protocol.names import GroupId


class Step(IntEnum):
    """What is asked for."""

    ASK = 0
    """Only whether the group could go."""
    CLOSE = 1
    """Close it if it could; one that is closed stays so for longer."""
    REOPEN = 2


class CloseGroupRequest(ApiMessage, load_json="protocol.schemas"):
    """A group, and a `Step`."""

    group_id: GroupId
    step: int


class CloseGroupResponse(ApiMessage, load_json="protocol.schemas"):
    """NONE if it was done, or could be; NON_EMPTY_GROUP for members, GROUP_ID_NOT_FOUND for what is not here."""

    error_code: int


def handle(node: Node, request: CloseGroupRequest, ctx: RequestContext) -> CloseGroupResponse:
    """Say whether a group could go, close it, or open it again."""
    adoptions, group_id, step = node.door.adoptions, request.group_id, request.step
    if step == Step.ASK:
        error = adoptions.may_go(ctx, group_id)
    elif step == Step.CLOSE:
        error = adoptions.close(ctx, group_id)
    elif step == Step.REOPEN:
        error = adoptions.reopen(group_id)
    else:
        error = ErrorCode.INVALID_REQUEST
    return error_response(request, error, ctx.api_version)


def error_response(request: CloseGroupRequest, error: ErrorCode, version: int) -> CloseGroupResponse:
    """The response, which has nothing but an error."""
    make: Any = CloseGroupResponse
    response: CloseGroupResponse = make(version=version, error_code=int(error))
    return response


API: Final = Api(
    schema_of(CloseGroupRequest, CloseGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=True,
)
