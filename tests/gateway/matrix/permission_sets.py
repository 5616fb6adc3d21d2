# SPDX-License-Identifier: Apache-2.0
"""The sets of permissions. Each has a user of its own, with the name of the set.

Literal ACLs are for `g-one`, `t-one` and `t-absent`, prefixed ones for names that begin with `g-` or `t-`; the name of
those for any group or topic is `*`.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.kafka.cluster import BROKEN

ADMIN: Final = "admin"
"""The super user of the cluster."""


class Pattern(NamedTuple):
    """The groups or topics that an ACL is for, or the cluster."""

    resource: str
    name: str
    is_prefix: bool = False


class Acl(NamedTuple):
    """One permission, given or denied."""

    operation: str
    pattern: Pattern
    is_denied: bool = False
    host: str = "*"

    def binding(self, user: str) -> AclBinding:
        """The ACL that gives or denies it to this user."""
        resource, name, is_prefix = self.pattern
        return AclBinding(
            ResourceType[resource],
            name,
            ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL,
            f"User:{user}",
            self.host,
            AclOperation[self.operation],
            AclPermissionType.DENY if self.is_denied else AclPermissionType.ALLOW,
        )

    def __str__(self) -> str:
        resource, name, is_prefix = self.pattern
        said = f"{'DENY' if self.is_denied else 'ALLOW'} {self.operation} "
        said += "CLUSTER" if resource == "BROKER" else f"{resource} {name}" + "*" * is_prefix
        return said if self.host == "*" else f"{said} from {self.host}"


class PermissionSet(NamedTuple):
    """The ACLs of one user."""

    user: str
    acls: tuple[Acl, ...]


GROUP: Final = (Pattern("GROUP", "g-one"),)
GROUPS_PREFIXED: Final = (Pattern("GROUP", "g-", is_prefix=True),)
ANY_GROUP: Final = (Pattern("GROUP", "*"),)
TOPIC: Final = (Pattern("TOPIC", "t-one"), Pattern("TOPIC", "t-absent"))
TOPICS_PREFIXED: Final = (Pattern("TOPIC", "t-", is_prefix=True),)
ANY_TOPIC: Final = (Pattern("TOPIC", "*"),)
CLUSTER: Final = (Pattern("BROKER", "kafka-cluster"),)  # confluent-kafka's word for it
EVERYTHING: Final = (*ANY_GROUP, *ANY_TOPIC, *CLUSTER)

# AclEntry.supportedOperations
OPERATIONS: Final = {
    "group": (GROUP, ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL")),
    "topic": (
        TOPIC,
        (
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "ALL",
        ),
    ),
    "cluster": (
        CLUSTER,
        (
            "CREATE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "ALL",
        ),
    ),
}


def allow(operation: str, *patterns: Pattern, host: str = "*") -> tuple[Acl, ...]:
    """Give an operation on all of these."""
    return tuple(Acl(operation, pattern, host=host) for pattern in patterns)


def deny(operation: str, *patterns: Pattern, host: str = "*") -> tuple[Acl, ...]:
    """Deny an operation on all of these."""
    return tuple(Acl(operation, pattern, is_denied=True, host=host) for pattern in patterns)


def permission_sets() -> list[PermissionSet]:
    """All sets, in the order of the recording."""
    return [
        PermissionSet("none", ()),
        *_one_operation(),
        *_pairs(),
        *_denials(),
        PermissionSet("some-of-each", SOME_OF_EACH),
        *(PermissionSet(user, SOME_OF_EACH) for user in BROKEN),
        PermissionSet(ADMIN, ()),
    ]


def bindings(sets: Iterable[PermissionSet]) -> list[AclBinding]:
    """The ACLs of all these sets."""
    return [acl.binding(each.user) for each in sets for acl in each.acls]


def _one_operation() -> Iterator[PermissionSet]:
    for resource, (patterns, operations) in OPERATIONS.items():
        for operation in operations:
            name = f"{resource}-{operation.lower().replace('_', '-')}"
            yield PermissionSet(name, allow(operation, *patterns))


def _pairs() -> Iterator[PermissionSet]:
    """The same or different operations on groups and topics, as requests about offsets need them."""
    scopes = {
        "literal": (*GROUP, *TOPIC),
        "prefixed": (*GROUPS_PREFIXED, *TOPICS_PREFIXED),
        "any": (*ANY_GROUP, *ANY_TOPIC),
    }
    for operation in ("READ", "DESCRIBE", "DELETE", "ALL"):
        for scope, patterns in scopes.items():
            yield PermissionSet(f"{operation.lower()}-{scope}", allow(operation, *patterns))
    for of_group, of_topic in (
        ("READ", "DESCRIBE"),
        ("READ", "WRITE"),
        ("DESCRIBE", "READ"),
        ("DELETE", "READ"),
        ("DELETE", "DESCRIBE"),
    ):
        name = f"group-{of_group.lower()}-topic-{of_topic.lower()}"
        yield PermissionSet(name, allow(of_group, *GROUP) + allow(of_topic, *TOPIC))
    yield PermissionSet("all-everything", allow("ALL", *EVERYTHING))
    yield PermissionSet(
        "read-literal-describe-cluster", allow("READ", *GROUP, *TOPIC) + allow("DESCRIBE", *CLUSTER)
    )


def _denials() -> Iterator[PermissionSet]:
    everything = allow("ALL", *EVERYTHING)
    for name, denied in {
        "group-read": deny("READ", *GROUP),
        "group-describe": deny("DESCRIBE", *GROUP),
        "group-delete": deny("DELETE", *GROUP),
        "group-all": deny("ALL", *GROUP),
        "topic-read": deny("READ", *TOPIC),
        "topic-write": deny("WRITE", *TOPIC),
        "topic-describe": deny("DESCRIBE", *TOPIC),
        "topic-all": deny("ALL", *TOPIC),
        "prefixed-read": deny("READ", *GROUPS_PREFIXED, *TOPICS_PREFIXED),
        "prefixed-describe": deny("DESCRIBE", *GROUPS_PREFIXED, *TOPICS_PREFIXED),
        "any-group-describe": deny("DESCRIBE", *ANY_GROUP),
        "any-topic-create": deny("CREATE", *ANY_TOPIC),
        "cluster-describe": deny("DESCRIBE", *CLUSTER),
        "cluster-alter": deny("ALTER", *CLUSTER),
        "cluster-all": deny("ALL", *CLUSTER),
    }.items():
        yield PermissionSet(f"all-but-{name}", everything + denied)
    yield PermissionSet(
        "read-prefixed-deny-describe-literal",
        allow("READ", *GROUPS_PREFIXED, *TOPICS_PREFIXED) + deny("DESCRIBE", *GROUP, *TOPIC),
    )
    yield PermissionSet(
        "read-literal-deny-read-prefixed",
        allow("READ", *GROUP, *TOPIC) + deny("READ", *GROUPS_PREFIXED, *TOPICS_PREFIXED),
    )
    yield PermissionSet(
        "describe-literal-deny-all-any",
        allow("DESCRIBE", *GROUP, *TOPIC) + deny("ALL", *ANY_GROUP, *ANY_TOPIC),
    )
    yield PermissionSet("deny-read-any", deny("READ", *ANY_GROUP, *ANY_TOPIC))
    elsewhere = "10.0.0.1"
    yield PermissionSet("all-from-elsewhere", allow("ALL", *EVERYTHING, host=elsewhere))
    yield PermissionSet(
        "all-but-from-elsewhere", everything + deny("ALL", *ANY_GROUP, *ANY_TOPIC, host=elsewhere)
    )


SOME_OF_EACH: Final = (
    *allow("READ", Pattern("TOPIC", "t-one"), Pattern("TOPIC", "t-absent"), Pattern("GROUP", "g-one")),
    *allow("DESCRIBE", Pattern("TOPIC", "t-two"), Pattern("GROUP", "g-two")),
    *allow("DELETE", Pattern("GROUP", "other-group")),
)
"""Different operations on different groups and topics; the users whose authorizer throws have these, too."""
