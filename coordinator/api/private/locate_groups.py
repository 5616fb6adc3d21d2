# SPDX-License-Identifier: Apache-2.0
"""LocateGroups v0, one of our own: which of some groups are here; a gateway asks the cluster about the others."""

from collections.abc import Generator
from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import Parked, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import moments, work_in_slices
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.messages import schema_of
from protocol.names import GroupId


class LocateGroupsRequest(ApiMessage, load_json="protocol.schemas"):
    """Some groups.

    `discard_readings` is set after the cluster has deleted something of these groups. What was read of a group there
    before is then not stored any more, if the group is not here.
    """

    group_ids: list[GroupId]
    discard_readings: bool


class LocateGroupsResponse(ApiMessage, load_json="protocol.schemas"):
    """Whether each group is here, in the order of the request. A group that this node does not serve counts as here."""

    error_code: int
    here: list[bool]


def handle(node: Node, request: LocateGroupsRequest, ctx: RequestContext) -> Parked:
    """Answer whether each group is here, once that is durable."""
    return work_in_slices(node, ctx, _locate(node, request, ctx))


def _locate(
    node: Node, request: LocateGroupsRequest, ctx: RequestContext
) -> Generator[None, None, LocateGroupsResponse]:
    here: list[bool] = []
    adoptions = node.group_access.adoptions
    for group_id in moments(request.group_ids):
        if group_id is None:
            yield
        else:
            here.append(adoptions.locate(ctx, group_id, discard_readings=request.discard_readings))
    return _response(ErrorCode.NONE, here)


def _response(error: ErrorCode, here: list[bool]) -> LocateGroupsResponse:
    make: Any = LocateGroupsResponse
    response: LocateGroupsResponse = make(version=0, error_code=int(error), here=here)
    return response


def error_response(request: LocateGroupsRequest, error: ErrorCode, version: int) -> LocateGroupsResponse:
    """The response that only has an error."""
    return _response(error, [])


API: Final = Api(
    schema_of(LocateGroupsRequest, LocateGroupsResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=lambda request: bool(request.discard_readings),
)
