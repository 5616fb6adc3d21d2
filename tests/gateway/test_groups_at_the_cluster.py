# SPDX-License-Identifier: Apache-2.0
"""A group at the cluster stays there, whatever is asked about it, until somebody joins it or commits in it here.

Each request is sent to the broker itself, and to each address of the gateway. The answers of the node that coordinates
the group are the broker's.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.wire import MAX_STRING_BYTES
from tests.gateway.matrix.play import shown, topic_ids
from tests.gateway.matrix.requests import Asked, Fields
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.net.requests import EVERY_REQUEST, Request
from tests.support.raw import (
    RawConnection,
    commit_offsets,
    fetch_offsets,
    find_coordinator,
    wait_for_coordinator,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC: Final = "read"
MEMBER: Final = {"generation_id": 3, "member_id": "stranger"}
PROTOCOL: Final = {"protocol_type": "consumer", "protocol_name": "range", "assignments": []}
OF_A_MEMBER: Final[Mapping[ApiKey, Fields]] = {
    ApiKey.HEARTBEAT: MEMBER,
    ApiKey.SYNC_GROUP: MEMBER | PROTOCOL,
    ApiKey.LEAVE_GROUP: {"member_id": "stranger", "members": [{"member_id": "stranger"}]},
}
JOINING: Final = {
    "session_timeout_ms": 6000,
    "rebalance_timeout_ms": 6000,
    "member_id": "stranger",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"x"}],
}
LOOKS: Final = (ApiKey.DESCRIBE_GROUPS, ApiKey.OFFSET_FETCH)
DELETES: Final = (ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE)
ADOPTS: Final = (ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT)

GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10


def every(*apis: ApiKey) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("request_", [each for each in EVERY_REQUEST if each.api in apis], ids=str)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A broker behind two nodes and a gateway."""
    work = tmp_path_factory.mktemp("whole")
    cluster = KafkaCluster(work / "kafka")
    running = Whole(work / "node", cluster, {"workers": 2, "gateway.workers": 1})
    try:
        cluster.start()
        cluster.create_topic(TOPIC, 2)
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()


def of_group(request: Request, group: str, absent: str, ids: Mapping[str, UUID]) -> Asked:
    """The request about a group, and an absent one if it can have several; a commit is one of a member."""
    api, version = request
    fields = {"group_id": group, **OF_A_MEMBER.get(api, JOINING if api is ApiKey.JOIN_GROUP else {})}
    if api is ApiKey.DESCRIBE_GROUPS:
        fields = {"groups": [group, absent], "include_authorized_operations": False}
    elif api is ApiKey.DELETE_GROUPS:
        fields = {"groups_names": [group, absent]}
    elif api is ApiKey.OFFSET_DELETE:
        fields["topics"] = [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]
    elif api is ApiKey.OFFSET_FETCH:
        named = {"topic_id": ids[TOPIC]} if version >= TOPIC_IDS_FROM else {"name": TOPIC}
        topics = [named | {"partition_indexes": [0, 1]}]
        several = [{"group_id": each, "topics": topics} for each in (group, absent)]
        fields = {"groups": several} if version >= GROUPS_FROM else fields | {"topics": topics}
    elif api is ApiKey.OFFSET_COMMIT:
        row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        named = {"topic_id": ids[TOPIC]} if version >= TOPIC_IDS_FROM else {"name": TOPIC}
        member = {"generation_id_or_member_epoch": 3, "member_id": "stranger"}
        fields |= member | {"topics": [named | {"partitions": [row]}]}
    return Asked(str(request), api, version, fields)


class AtTheCluster:
    """A group whose offsets are committed at the broker."""

    def __init__(self, whole: Whole, name: str) -> None:
        self.whole = whole
        self.name = name
        self.broker = whole.cluster.address(1)
        self.ids = topic_ids(self.broker, [TOPIC])
        self.offset = 0
        wait_for_coordinator(self.broker, name)
        self.node = coordinator_of(whole, name)
        candidates = (f"{name}-absent-{number}" for number in count())
        self.absent = next(each for each in candidates if coordinator_of(whole, each) == self.node)
        ports = (whole.port, whole.port + 1, whole.broker_port(1))
        self.others = [each for port in ports if (each := f"127.0.0.1:{port}") != self.node]
        self.commit()

    def commit(self) -> None:
        """Commit a new offset at the broker."""
        self.offset += 1
        commit_offsets(self.broker, self.name, TOPIC, {0: self.offset})

    def ask(self, address: str, request: Request) -> str:
        asked = of_group(request, self.name, self.absent, self.ids)
        with RawConnection(address) as connection:
            return shown(asked, connection.call(asked.message(), asked.version), self.ids)

    def stays(self) -> None:
        """See through the gateway what is committed at the broker from now on."""
        self.commit()
        assert fetch_offsets(self.node, self.name) == {(TOPIC, 0): self.offset}


def coordinator_of(whole: Whole, group: str) -> str:
    return f"127.0.0.1:{find_coordinator(whole.bootstrap, group).port}"


def name_of(request: Request) -> str:
    return f"{request.api.name.lower()}-{request.version}"


@every(*LOOKS)
def test_a_look_is_answered_as_the_cluster_answers_it(whole: Whole, request_: Request) -> None:
    group = AtTheCluster(whole, name_of(request_))
    for _ in range(2):
        assert group.ask(group.node, request_) == group.ask(group.broker, request_)
        for address in group.others:
            assert ErrorCode.NOT_COORDINATOR.name in group.ask(address, request_)
        group.stays()
    assert f'"group":"{group.name}"' not in whole.log_text()


@every(*OF_A_MEMBER)
def test_a_request_of_a_member_is_answered_as_the_cluster_answers_it(whole: Whole, request_: Request) -> None:
    group = AtTheCluster(whole, name_of(request_))
    assert group.ask(group.node, request_) == group.ask(group.broker, request_)
    for address in group.others:
        assert ErrorCode.NOT_COORDINATOR.name in group.ask(address, request_)
    group.stays()


@every(*DELETES)
def test_what_is_deleted_is_deleted_at_the_cluster(whole: Whole, request_: Request) -> None:
    group = AtTheCluster(whole, name_of(request_))
    for address in group.others:
        assert ErrorCode.NOT_COORDINATOR.name in group.ask(address, request_)
    group.stays()
    answer = group.ask(group.node, request_)
    assert fetch_offsets(group.broker, group.name) == {}
    group.commit()
    assert answer == group.ask(group.broker, request_)
    group.stays()


@every(ApiKey.OFFSET_COMMIT)
def test_a_commit_of_a_member_takes_nothing_over(whole: Whole, request_: Request) -> None:
    group = AtTheCluster(whole, f"member-{name_of(request_)}")
    version = request_.version
    error = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert error.name in group.ask(group.node, request_)
    for address in group.others:
        assert ErrorCode.NOT_COORDINATOR.name in group.ask(address, request_)
    group.stays()


ODD_IDS: Final = {"empty": "", "longest": "x" * MAX_STRING_BYTES}
IN_ORDER: Final = (*ADOPTS[1:], *LOOKS, *OF_A_MEMBER, *ADOPTS[:1], *reversed(DELETES))
"""Such a group is made, looked at, and deleted."""


@pytest.mark.parametrize("group", ODD_IDS.values(), ids=ODD_IDS)
def test_ids_that_are_odd_are_answered_for_as_the_cluster_does(whole: Whole, group: str) -> None:
    ids = topic_ids(whole.cluster.address(1), [TOPIC])
    node = coordinator_of(whole, group)
    differing = {}
    for api in IN_ORDER:
        for request in (each for each in EVERY_REQUEST if each.api is api):
            asked = of_group(request, group, group, ids)
            if api is ApiKey.OFFSET_COMMIT:
                asked.fields.update(generation_id_or_member_epoch=-1, member_id="")
            answers = []
            for address in (whole.cluster.address(1), node):
                with RawConnection(address) as connection:
                    answers.append(shown(asked, connection.call(asked.message(), asked.version), ids))
            if answers[0] != answers[1]:
                differing[str(request)] = answers
    assert differing == {}


@every(*ADOPTS)
def test_a_join_and_a_commit_of_nobody_take_the_group_over(whole: Whole, request_: Request) -> None:
    group = AtTheCluster(whole, f"moving-{name_of(request_)}")
    asked = of_group(request_, group.name, group.absent, group.ids)
    if request_.api is ApiKey.OFFSET_COMMIT:
        asked.fields.update(generation_id_or_member_epoch=-1, member_id="")
        asked.fields["topics"][0]["partitions"][0]["committed_offset"] = 50
    with RawConnection(group.node) as connection:
        connection.call(asked.message(), asked.version)
    offset = 50 if request_.api is ApiKey.OFFSET_COMMIT else group.offset
    group.commit()
    assert fetch_offsets(group.node, group.name) == {(TOPIC, 0): offset}
