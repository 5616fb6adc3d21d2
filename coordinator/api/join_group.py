# SPDX-License-Identifier: Apache-2.0
"""The handler of JoinGroup v0-v9.

v1: rebalance timeout; before, the session timeout counts for both. v2: throttle time. v4: a first join gets
MEMBER_ID_REQUIRED (KIP-394). v5: group.instance.id (KIP-345). v6: flexible. v7: protocol type, and null instead
of an empty protocol name on errors. v8: reason (KIP-800). v9: skip_assignment (KIP-814).
"""

from typing import Any, Final

from coordinator.api.context import PARKED, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import PIECES_FROM_BYTES
from coordinator.groups.classic.join import join
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from protocol.apis import VersionRange
from protocol.bounds import BLOBS
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode
from protocol.hot.join_group import SCHEMA, JoinGroupRequest, JoinGroupResponse
from protocol.kafka_python_messages import JoinGroupResponse as StreamedResponse
from protocol.wire import MAX_STRING_BYTES

NULLABLE_PROTOCOL_NAME_FROM: Final = 7
SUFFIX_BYTES: Final = 37
"""The bytes of the suffix of a new member's id: a dash and a uuid."""


def handle(node: Node, request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse | ParkedSentinel:
    """Add a member to its group; the response waits for the rebalance that the join starts."""
    group_access = node.group_access
    config = group_access.env.config
    if not request.group_id:
        return error_response(request, ErrorCode.INVALID_GROUP_ID, ctx.api_version)
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        return error_response(request, ErrorCode.INVALID_SESSION_TIMEOUT, ctx.api_version)
    if not _fits_the_answers(request, ctx.client_id):
        return error_response(request, ErrorCode.INVALID_REQUEST, ctx.api_version)
    if ctx.api_version == 0:
        request = copy_with_fields(request, rebalance_timeout_ms=request.session_timeout_ms)
    kept = group_access.look_up_classic_to_change(ctx, request.group_id)
    if isinstance(kept, AbsentGroup):
        kept = ErrorCode.UNKNOWN_MEMBER_ID if request.member_id else group_access.make_unstored_group(kept)
    if not isinstance(kept, GroupEntry):
        return error_response(request, kept, ctx.api_version)
    group_access.carry_out_outcome(
        ctx, kept, join(group_access.env, kept.classic_group, request, ctx, group_access.clock.now())
    )
    return PARKED


def _fits_the_answers(request: JoinGroupRequest, client_id: str) -> bool:
    """Return whether the strings of the member and its group fit into responses to other clients.

    Bytes that were not UTF-8 became longer when they were decoded, and a new member's id is longer than its prefix. In
    Kafka one such member makes ListGroups fail for all clients.
    """
    return (
        _fits(request.group_id)
        and _fits(request.protocol_type)
        and _fits(request.group_instance_id or client_id, SUFFIX_BYTES)
        and _fits(client_id)
        and all(_fits(protocol.name) for protocol in request.protocols)
    )


def _fits(text: str, more_bytes: int = 0) -> bool:
    # The first test accepts nearly all: no character takes more than four bytes.
    return 4 * len(text) + more_bytes <= MAX_STRING_BYTES or (
        len(text.encode()) + more_bytes <= MAX_STRING_BYTES
    )


def error_response(request: JoinGroupRequest, error: ErrorCode, version: int) -> JoinGroupResponse:
    """Return the refusal of a join, with the member id of the request."""
    return JoinGroupResponse(error_code=error, member_id=request.member_id, protocol_name=None)


def adapt_response_to_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Return the response in the form of a version: below v7 the protocol name is empty instead of null."""
    if response.protocol_name is None and version < NULLABLE_PROTOCOL_NAME_FROM:
        return copy_with_fields(response, protocol_name="")
    return response


def to_streamed_response_if_large(response: JoinGroupResponse, version: int) -> Any:
    """Return a response in the form that is encoded in steps, if it has much metadata for a leader; else None."""
    if sum([len(member.metadata) for member in response.members]) <= PIECES_FROM_BYTES:
        return None
    kind: Any = StreamedResponse
    return kind(
        version=version,
        error_code=response.error_code,
        generation_id=response.generation_id,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        leader=response.leader,
        skip_assignment=response.skip_assignment,
        member_id=response.member_id,
        members=iter(response.members),
    )


API: Final = Api(
    SCHEMA,
    versions=VersionRange(0, 9),
    handle=handle,
    error_response=error_response,
    frame=BLOBS,
    changes=True,
    waits_for_members=True,
    adapt=adapt_response_to_version,
    in_pieces=to_streamed_response_if_large,
    short_answers=True,
)
