# SPDX-License-Identifier: Apache-2.0
"""What an answer says that a client may do (KIP-430): everything, as there is no authorizer yet to ask."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, cast


class Operation(IntEnum):
    """Kafka's codes of what may be done (org.apache.kafka.common.acl.AclOperation)."""

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


class Resource(Enum):
    """What something may be done with."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


# AclEntry.supportedOperations
SUPPORTED: Final[Mapping[Resource, frozenset[Operation]]] = {
    Resource.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    Resource.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    Resource.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        }
    ),
}

NOT_ASKED: Final = cast("set[int]", None)
"""The place of operations that were not asked for; kafka-python's stubs do not know that it may be None."""


_CODES: Final = {resource: {int(each) for each in operations} for resource, operations in SUPPORTED.items()}


def authorized_operations(resource: Resource, *, asked: bool) -> set[int]:
    """What a response says of a resource: the codes of the operations, NOT_ASKED where they are not wanted.

    Every caller gets the same set, which is not to be changed.
    """
    return _CODES[resource] if asked else NOT_ASKED
