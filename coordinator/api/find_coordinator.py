# SPDX-License-Identifier: Apache-2.0
"""The handler of FindCoordinator v0-v6.

v1: key type (group, transaction), throttle time, error message. v3: flexible. v4: several keys (KIP-699).
v6: share groups (KIP-932).

Only groups are coordinated here. For other key types a node returns INVALID_REQUEST, like a Kafka broker that does not
run their coordinator: with COORDINATOR_NOT_AVAILABLE a transactional producer would retry until it times out.
"""

from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list, respond_in_slices
from coordinator.catalogue.topic import Refusal
from coordinator.node import Node
from coordinator.telemetry.logs import get_logger
from coordinator.topology.view import Broker
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FindCoordinatorRequest, FindCoordinatorResponse, build_schema
from protocol.newtypes import GroupId

log = get_logger("api")

SEVERAL_KEYS_FROM: Final = 4
GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

NOWHERE_ID: Final = -1
NOWHERE_HOST: Final = ""
NOWHERE_PORT: Final = -1


def handle(
    node: Node, request: FindCoordinatorRequest, ctx: RequestContext
) -> FindCoordinatorResponse | ParkedSentinel:
    """Name the node that coordinates each key. The empty key is valid, and a repeated key gets a result each time."""
    version = ctx.api_version
    if request.key_type == TRANSACTION and ctx.claim_first_api_use():
        log.warning(
            "a client asks for transactions, which are not coordinated here",
            client_id=ctx.client_id,
            client_host=ctx.client_host,
        )
    if version >= SEVERAL_KEYS_FROM:
        coordinators = (
            _coordinator(key, _find(node, key, request.key_type, version), version)
            for key in request.coordinator_keys
        )
        return respond_in_slices(
            node, ctx, FindCoordinatorResponse(version=version, coordinators=cast_as_list(coordinators))
        )
    found = _find(node, request.key, request.key_type, version)
    if isinstance(found, Refusal):
        return _single_refusal(found, version)
    return FindCoordinatorResponse(
        version=version,
        error_message="NONE",  # Kafka's name for no error; the message is empty in later versions
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def error_response(
    request: FindCoordinatorRequest, error: ErrorCode, version: int
) -> FindCoordinatorResponse:
    """Return the response with one error for every key."""
    refusal = Refusal(error)
    if version >= SEVERAL_KEYS_FROM:
        return FindCoordinatorResponse(
            version=version,
            coordinators=[_not_found(key, refusal, version) for key in request.coordinator_keys],
        )
    return _single_refusal(refusal, version)


def _find(node: Node, key: str, key_type: int, version: int) -> Broker | Refusal:
    """Return the node that coordinates this key, or why there is none."""
    if key_type == GROUP:
        group_id = GroupId(key)
        broker = node.cluster.look_up_coordinator(group_id)
        if broker is None:
            return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        # A loading partition has its coordinator already, which answers COORDINATOR_LOAD_IN_PROGRESS.
        if broker.node_id == node.node_id and not node.group_access.leads(group_id):
            return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return broker
    if key_type == TRANSACTION:
        return Refusal(ErrorCode.INVALID_REQUEST, "No transactions are coordinated here.")
    if key_type == SHARE:
        # From v4 on Kafka has no message for such a key.
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "No share groups are coordinated here." if version < SEVERAL_KEYS_FROM else "",
        )
    return Refusal(ErrorCode.INVALID_REQUEST, f"There is no key type {key_type}.")


def _coordinator(key: str, found: Broker | Refusal, version: int) -> FindCoordinatorResponse.Coordinator:
    if isinstance(found, Refusal):
        return _not_found(key, found, version)
    return FindCoordinatorResponse.Coordinator(
        version=version,
        key=key,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_message="",
    )


def _not_found(key: str, refusal: Refusal, version: int) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        version=version,
        key=key,
        node_id=NOWHERE_ID,
        host=NOWHERE_HOST,
        port=NOWHERE_PORT,
        error_code=refusal.error,
        error_message=refusal.truncated_message or "",
    )


def _single_refusal(refusal: Refusal, version: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        version=version,
        error_code=refusal.error,
        error_message=refusal.truncated_message,
        node_id=NOWHERE_ID,
        host=NOWHERE_HOST,
        port=NOWHERE_PORT,
    )


API: Final = Api(
    build_schema(FindCoordinatorRequest, FindCoordinatorResponse),
    versions=VersionRange(0, 6),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    error_parts=("coordinators",),
)
