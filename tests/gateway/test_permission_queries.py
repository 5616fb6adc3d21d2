# SPDX-License-Identifier: Apache-2.0
"""What a broker's answers say of permissions: only what is known to mean so is one, and nothing else is remembered."""

from collections.abc import Callable
from struct import pack
from typing import Any, Final
from uuid import UUID

import pytest

from coordinator.authorization.permissions import (
    DESCRIBE_CLUSTER,
    Decisions,
    Operation,
    Permission,
    group_permission,
    topic_permission,
)
from coordinator.gateway.cluster_authorizer import ConnectionPermissionCache
from coordinator.gateway.permission_queries import permission_queries
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.gateway.test_rewriting import CORRELATION_ID, frame_of

NONE: Final = ErrorCode.NONE
UNKNOWN: Final = ErrorCode.UNKNOWN_SERVER_ERROR
NEWER: Final = 9_999
"""A code of brokers to come."""
TOPIC_ID: Final = bytes(15) + b"t"

OF_COORDINATORS: Final = {
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "GROUP_ID_NOT_FOUND",
    "INVALID_GROUP_ID",
    "NONE",
    "NOT_COORDINATOR",
}
OF_TOPICS: Final = {
    "INVALID_TOPIC_EXCEPTION",
    "LEADER_NOT_AVAILABLE",
    "NONE",
    "UNKNOWN_TOPIC_OR_PARTITION",
}


def heartbeat(code: int) -> bytes:
    return pack(">iih", 6, CORRELATION_ID, code)


def deletion(code: int) -> bytes:
    return frame_of(ApiKey.OFFSET_DELETE, {"error_code": code, "throttle_time_ms": 0, "topics": []}, 0)


def description(code: int) -> bytes:
    group = {
        "error_code": code,
        "group_id": "g",
        "group_state": "",
        "protocol_type": "",
        "protocol_data": "",
        "members": [],
    }
    return frame_of(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, 0)


def metadata(version: int, *topics: dict[str, Any], operations: set[int] | None = None) -> bytes:
    """A Metadata response; None gives no operations of the cluster."""
    return frame_of(
        ApiKey.METADATA,
        {
            "throttle_time_ms": 0,
            "brokers": [],
            "cluster_id": None,
            "controller_id": 1,
            "topics": [{"is_internal": False, "partitions": [], **each} for each in topics],
            "authorized_operations": operations,
        },
        version,
    )


def topic(code: int, operations: set[int] | None = None) -> bytes:
    return metadata(8, {"name": "t", "error_code": code, "authorized_operations": operations or {3, 8}})


def topic_by_id(code: int) -> bytes:
    return metadata(
        12,
        {"name": None, "topic_id": UUID(bytes=TOPIC_ID), "error_code": code, "authorized_operations": {3, 8}},
    )


QUERIES: Final[list[tuple[Permission, Callable[[int], bytes], set[str], str]]] = [
    (
        group_permission(Operation.READ, "g"),
        heartbeat,
        OF_COORDINATORS
        | {
            "FENCED_INSTANCE_ID",
            "ILLEGAL_GENERATION",
            "INCONSISTENT_GROUP_PROTOCOL",
            "REBALANCE_IN_PROGRESS",
            "UNKNOWN_MEMBER_ID",
        },
        "GROUP_AUTHORIZATION_FAILED",
    ),
    (
        group_permission(Operation.DELETE, "g"),
        deletion,
        OF_COORDINATORS | {"NON_EMPTY_GROUP"},
        "GROUP_AUTHORIZATION_FAILED",
    ),
    (
        group_permission(Operation.DESCRIBE, "g"),
        description,
        OF_COORDINATORS,
        "GROUP_AUTHORIZATION_FAILED",
    ),
    (topic_permission(Operation.READ, "t"), topic, OF_TOPICS, "TOPIC_AUTHORIZATION_FAILED"),
    (topic_permission(Operation.DESCRIBE, TOPIC_ID), topic_by_id, OF_TOPICS, "TOPIC_AUTHORIZATION_FAILED"),
]


def decisions_of(permission: Permission, frame: bytes) -> Decisions:
    """What the one query about a permission makes of this answer."""
    (query,) = permission_queries([permission])
    return query.read(frame)


def remembered(decisions: Decisions) -> Decisions:
    """As many of these decisions as a connection remembers."""
    cache = ConnectionPermissionCache()
    cache.remember(decisions, 1)
    return {permission: decision for permission, (decision, _) in cache.decisions.items()}


@pytest.mark.parametrize("code", [*ErrorCode, NEWER])
@pytest.mark.parametrize(
    ("permission", "frame", "allowed", "denied"), QUERIES, ids=[each[1].__name__ for each in QUERIES]
)
def test_every_error_code_means_allowed_denied_or_not_known(
    permission: Permission, frame: Callable[[int], bytes], allowed: set[str], denied: str, code: int
) -> None:
    decisions = decisions_of(permission, frame(code))
    decision = decisions[permission]
    if code == NEWER:
        assert decision is UNKNOWN
        assert permission not in remembered(decisions)
        return
    error = ErrorCode(code)
    assert decision is (NONE if error.name in allowed else error)
    is_lasting = error.name in allowed or error.name == denied
    assert remembered(decisions).get(permission) is (decision if is_lasting else None)


READ = topic_permission(Operation.READ, "t")
DESCRIBE = topic_permission(Operation.DESCRIBE, "t")


def test_operations_of_a_topic_say_what_is_allowed() -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert decisions_of(READ, topic(0, {8})) == {READ: denied, DESCRIBE: NONE}
    assert decisions_of(READ, topic(0, {4})) == {READ: denied, DESCRIBE: denied}
    assert decisions_of(READ, topic(int(denied), {3, 8})) == {READ: denied, DESCRIBE: denied}


def test_operations_that_are_not_given_mean_that_nothing_is_known() -> None:
    """As Kafka answers whose authorizer has thrown at the cluster; at a topic it gives the topic an error."""
    frame = metadata(8, {"name": "t", "error_code": 0, "authorized_operations": None})
    assert decisions_of(READ, frame) == {READ: UNKNOWN, DESCRIBE: UNKNOWN}
    not_given = decisions_of(DESCRIBE_CLUSTER, metadata(8))
    assert not_given == {DESCRIBE_CLUSTER: UNKNOWN}
    assert remembered(not_given) == {}
    none = metadata(8, operations=set())
    assert decisions_of(DESCRIBE_CLUSTER, none) == {DESCRIBE_CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert decisions_of(DESCRIBE_CLUSTER, metadata(8, operations={8})) == {DESCRIBE_CLUSTER: NONE}


def test_what_is_missing_in_an_answer_is_not_known() -> None:
    assert decisions_of(READ, metadata(8)) == {READ: UNKNOWN, DESCRIBE: UNKNOWN}
    by_id = topic_permission(Operation.READ, TOPIC_ID)
    assert decisions_of(by_id, metadata(12))[by_id] is UNKNOWN
    group = group_permission(Operation.DESCRIBE, "g")
    nothing = frame_of(ApiKey.DESCRIBE_GROUPS, {"groups": []}, 0)
    assert decisions_of(group, nothing) == {group: UNKNOWN}
