# SPDX-License-Identifier: Apache-2.0
"""The private api CloseGroup v0: reports whether a group can be given back, and closes it to changes until then."""

from enum import IntEnum
from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.newtypes import GroupId


class CloseGroupStep(IntEnum):
    """A step of giving a group back."""

    ASK = 0
    """Only report whether the group can be given back."""
    CLOSE = 1
    """Close the group if it can be given back. If it is closed already, restart the time until it opens."""
    REOPEN = 2
    """Let clients change the group again."""


class CloseGroupRequest(ApiMessage, load_json="protocol.schemas"):
    """A request to take one `CloseGroupStep` for a group."""

    group_id: GroupId
    step: int


class CloseGroupResponse(ApiMessage, load_json="protocol.schemas"):
    """The outcome of the step: NONE if it was taken or, for `ASK`, if the group could be closed.

    NON_EMPTY_GROUP: the group has members. GROUP_ID_NOT_FOUND: the node has nothing of the group.
    """

    error_code: int


def handle(node: Node, request: CloseGroupRequest, ctx: RequestContext) -> CloseGroupResponse:
    """Report whether a group could be given back, close it, or open it again."""
    adoptions, group_id, step = node.group_access.adoptions, request.group_id, request.step
    if step == CloseGroupStep.ASK:
        error = adoptions.check_give_back(ctx, group_id)
    elif step == CloseGroupStep.CLOSE:
        error = adoptions.close_for_give_back(ctx, group_id)
    elif step == CloseGroupStep.REOPEN:
        error = adoptions.reopen(group_id)
    else:
        error = ErrorCode.INVALID_REQUEST
    return error_response(request, error, ctx.api_version)


def error_response(request: CloseGroupRequest, error: ErrorCode, version: int) -> CloseGroupResponse:
    """Return the response, which has only an error."""
    make: Any = CloseGroupResponse
    response: CloseGroupResponse = make(version=version, error_code=int(error))
    return response


API: Final = Api(
    build_schema(CloseGroupRequest, CloseGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=True,
)
