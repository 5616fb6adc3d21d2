# SPDX-License-Identifier: Apache-2.0
"""Permissions of a client on a resource, and the decisions on them."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple, TypeAlias, cast

from protocol.errors import ErrorCode


class Operation(IntEnum):
    """Kafka's codes of operations (org.apache.kafka.common.acl.AclOperation)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(Enum):
    """The kinds of resources on which permissions exist."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


class Permission(NamedTuple):
    """An operation on a group, the cluster, or a topic by its name or (16 bytes) its id."""

    resource: ResourceType
    operation: Operation
    name: str | bytes


def group_permission(operation: Operation, group_id: str) -> Permission:
    """Return the permission for an operation on a group."""
    return Permission(ResourceType.GROUP, operation, group_id)


def topic_permission(operation: Operation, topic: str | bytes) -> Permission:
    """Return the permission for an operation on the topic of this name or id."""
    return Permission(ResourceType.TOPIC, operation, topic)


CLUSTER_NAME: Final = "kafka-cluster"
"""The name that Kafka's ACLs give the cluster (Resource.CLUSTER_NAME)."""
DESCRIBE_CLUSTER: Final = Permission(ResourceType.CLUSTER, Operation.DESCRIBE, CLUSTER_NAME)
"""The permission to describe the cluster."""


Decisions: TypeAlias = dict[Permission, ErrorCode]
"""NONE for each permission that the client has, else the error with which a broker refuses a request that needs it."""

DENIED: Final[Mapping[ResourceType, ErrorCode]] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
"""The decision that the client lacks the permission; any error except this one and NONE stands for "not known"."""


def is_definite_decision(permission: Permission, decision: ErrorCode) -> bool:
    """Return whether the decision states that the client has the permission, or that it lacks it."""
    return decision in (ErrorCode.NONE, DENIED[permission.resource])


SUPPORTED: Final[Mapping[ResourceType, frozenset[Operation]]] = {
    ResourceType.TOPIC: frozenset(Operation) - {Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE},
    ResourceType.GROUP: frozenset({Operation.READ, Operation.DELETE, Operation.DESCRIBE})
    | {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS},
    ResourceType.CLUSTER: frozenset(Operation) - {Operation.READ, Operation.WRITE, Operation.DELETE},
}
"""The operations that exist for each resource (AclEntry.supportedOperations)."""

NOT_ASKED: Final = cast("set[int]", None)
"""The value for operations that were not asked for; kafka-python's stubs do not know that it may be None."""
