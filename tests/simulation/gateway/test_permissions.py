# SPDX-License-Identifier: Apache-2.0
"""The model cluster permits what a real Kafka does: its answers to users with all sets of ACLs are those recorded.

`tests/gateway/test_rights.py` holds the recording to a real Kafka. The model has permissions for names, so the patterns
of an ACL are those names of the matrix that they are for; it has no ACLs that deny.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from coordinator.config import Address
from protocol.apis import ApiKey
from tests.gateway.matrix.permission_sets import ADMIN, Acl, PermissionSet, permission_sets
from tests.gateway.matrix.play import CLOSED, shown
from tests.gateway.matrix.recording import load
from tests.gateway.matrix.requests import (
    GROUP_IDS,
    GROUPS,
    NAMES,
    TOPICS,
    Asked,
    absent_ids,
    commit_of,
    kinds,
)
from tests.kafka.cluster import BROKEN
from tests.simulation.gateway.messages import answer, read_request
from tests.simulation.gateway.model import CLUSTER, OFFERED, OPERATIONS, Caller, Model
from tests.simulation.gateway.permits import SUPER_USER, Permit, Permits
from tests.simulation.gateway.test_model import OF_GROUPS

BROKER: Final = 1
EVERYTHING: Final = tuple(dict.fromkeys(each for operations in OPERATIONS.values() for each in operations))
OF: Final = {"GROUP": ("GROUP", GROUP_IDS), "TOPIC": ("TOPIC", NAMES), "BROKER": ("CLUSTER", (CLUSTER,))}
"""What a resource is called in the model, and its names in the matrix."""


def plain_sets() -> list[PermissionSet]:
    """Those that deny nothing and are for any host."""
    return [
        each
        for each in permission_sets()
        if each.user not in (*BROKEN, ADMIN)
        and all(not acl.is_denied and acl.host == "*" for acl in each.acls)
    ]


def permits_of(acl: Acl) -> Iterator[Permit]:
    """What an ACL permits, by name."""
    resource, names = OF[acl.pattern.resource]
    pattern = acl.pattern.name
    for name in names:
        if pattern in ("*", name) or (acl.pattern.is_prefix and name.startswith(pattern)):
            for operation in EVERYTHING if acl.operation == "ALL" else (acl.operation,):
                yield Permit(operation, resource, name)


class Cluster:
    """The model with what the matrix needs: topics, groups with offsets, and users."""

    def __init__(self) -> None:
        self.model = Model(lambda: 1.0, {BROKER: Address("127.0.0.1", 9092)}, Permits())
        for name in TOPICS:
            self.model.create_topic(name, 1)
        self.ids = absent_ids() | {name: self.model.topics[name].topic_id for name in TOPICS}
        for each in SETS:
            for acl in each.acls:
                for permit in permits_of(acl):
                    self.model.permits.allow(each.user, permit, 0.0)

    def answer(self, user: str, asked: Asked) -> str:
        """The answer to one request, as the recording has it."""
        message = asked.message()
        message.API_VERSION = asked.version
        message.with_header(correlation_id=1, client_id="matrix")
        _, request = read_request(message.encode(header=True, framed=False))
        self._commit_all()
        fields = self.model.handle(Caller(user, BROKER, "matrix"), asked.api, asked.version, request)
        if fields is None:
            return CLOSED
        frame = answer(asked.api, asked.version, 1, fields)[4:]
        response = message.header.get_response_class().decode(frame, header=True)
        return shown(asked, response, self.ids)

    def _commit_all(self) -> None:
        for group in GROUPS:
            fields = commit_of(group, TOPICS, partitions=[0])
            message = Asked("", ApiKey.OFFSET_COMMIT, 8, fields).message()
            message.API_VERSION = 8
            message.with_header(correlation_id=1, client_id="matrix")
            _, request = read_request(message.encode(header=True, framed=False))
            self.model.handle(Caller(SUPER_USER, BROKER, "matrix"), ApiKey.OFFSET_COMMIT, 8, request)


SETS: Final = plain_sets()
PLAYED: Final = [
    kind.name
    for kind in kinds(absent_ids())
    if all(
        each.api in OF_GROUPS and each.version in range(OFFERED[each.api].min, OFFERED[each.api].max + 1)
        for each in kind.requests
    )
]


@pytest.mark.parametrize("kind", PLAYED)
def test_the_model_permits_what_kafka_does(kind: str) -> None:
    recorded = load()[kind]
    cluster = Cluster()
    (asked,) = (each for each in kinds(cluster.ids) if each.name == kind)
    differing = {
        (each.user, request.name): (said, wanted)
        for each in SETS
        for request, wanted in zip(asked.requests, recorded.cases[each.user], strict=True)
        if (said := cluster.answer(each.user, request)) != wanted
    }
    assert not differing
