# SPDX-License-Identifier: Apache-2.0
"""Metadata, at every version."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.limits import DEFAULT_LIMITS
from coordinator.catalogue.names import OFFSETS_TOPIC
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import MetadataRequest
from storage.errors import StorageFull
from tests.api.asking import CLUSTER_ID, ENDPOINT, Answers, FakeNode, error_response_of, versions

KEY = ApiKey.METADATA
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
STRANGER = uuid.UUID(int=5 << 64)


def topic(name: str | None = None, topic_id: uuid.UUID | None = None) -> Any:
    kind: Any = MetadataRequest.MetadataRequestTopic
    return kind(name=name, topic_id=topic_id)


def request(*names: str, create: bool = False, operations: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[topic(name) for name in names],
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=operations,
        include_topic_authorized_operations=operations,
    )


def told(response: Any) -> list[tuple[str | None, int, int]]:
    return [(each.name, each.error_code, len(each.partitions)) for each in response.topics]


@EVERY_VERSION
def test_the_cluster_is_this_one_node(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request("there"))
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [(7, *ENDPOINT)]
    if version >= 1:
        assert response.controller_id == 7
        assert response.brokers[0].rack is None
    if version >= 2:
        assert response.cluster_id == CLUSTER_ID
    assert response.authorized_operations is None
    assert response.error_code == 0


@EVERY_VERSION
def test_a_topic_is_told_with_all_its_partitions(node: FakeNode, version: int) -> None:
    topics = node.have(orders=3)
    (answer,) = node.ask(KEY, version, request("orders")).topics
    assert (answer.error_code, answer.name, bool(answer.is_internal)) == (0, "orders", False)
    assert answer.topic_id == (topics["orders"].uuid if version >= 10 else None)
    assert answer.authorized_operations is None
    for index, partition in enumerate(answer.partitions):
        assert (partition.error_code, partition.partition_index, partition.leader_id) == (0, index, 7)
        assert (list(partition.replica_nodes), list(partition.isr_nodes)) == ([7], [7])
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert not partition.offline_replicas
    assert len(answer.partitions) == 3


@EVERY_VERSION
def test_all_topics_come_in_name_order_with_the_internal_one(node: FakeNode, version: int) -> None:
    node.have(b=1, a=2)
    everything = MetadataRequest(topics=None if version >= 1 else [])
    response = node.ask(KEY, version, everything)
    assert told(response) == [(OFFSETS_TOPIC, 0, 50), ("a", 0, 2), ("b", 0, 1)]
    assert [bool(each.is_internal) for each in response.topics] == [version >= 1, False, False]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 1])
def test_no_topics_are_no_topics(node: FakeNode, version: int) -> None:
    node.have(a=1)
    assert node.ask(KEY, version, request()).topics == []


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 4])
def test_existing_topics_come_first_each_once_and_missing_ones_have_their_error(
    node: FakeNode, version: int
) -> None:
    node.have(b=1, a_c=1)
    response = node.ask(
        KEY,
        version,
        request("nope", "b", "bad name", "a_c", "", "a.c", "b", OFFSETS_TOPIC, "__transaction_state"),
    )
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert told(response) == [
        ("b", 0, 1),
        ("a_c", 0, 1),
        (OFFSETS_TOPIC, 0, 50),
        ("nope", unknown, 0),
        ("bad name", invalid, 0),
        ("", invalid, 0),
        ("a.c", unknown, 0),
        ("__transaction_state", unknown, 0),
    ]
    assert [each.name for each in response.topics if each.is_internal] == [
        OFFSETS_TOPIC,
        "__transaction_state",
    ]
    assert node.names() == ["a_c", "b"]


# --- authorized operations


@EVERY_VERSION
def test_authorized_operations_are_told_where_the_version_can(node: FakeNode, version: int) -> None:
    node.have(a=1)
    if version < 8:
        return
    response = node.ask(KEY, version, request("a", "nope", operations=True))
    assert response.authorized_operations == ({5, 7, 8, 9, 10, 11, 12} if version <= 10 else None)
    assert [each.authorized_operations for each in response.topics] == [{3, 4, 5, 6, 7, 8, 10, 11}] * 2


# --- by id


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id_the_unknown_ones_first(node: FakeNode, version: int) -> None:
    topics = node.have(a=1, b=2)
    ids = [topics["b"].uuid, STRANGER, topics["a"].uuid, topics["b"].uuid]
    response = node.ask(KEY, version, MetadataRequest(topics=[topic(topic_id=each) for each in ids]))
    assert told(response) == [(None, ErrorCode.UNKNOWN_TOPIC_ID, 0), ("b", 0, 2), ("a", 0, 1)]
    assert [each.topic_id for each in response.topics] == [STRANGER, ids[0], ids[2]]


@pytest.mark.parametrize("version", [12, 13])
def test_names_beside_ids_are_not_looked_at(node: FakeNode, version: int) -> None:
    topics = node.have(a=1, b=1)
    wanted = [topic("b"), topic(topic_id=topics["a"].uuid), topic("x", topics["a"].uuid)]
    assert told(node.ask(KEY, version, MetadataRequest(topics=wanted))) == [("a", 0, 1)]


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (10, topic("a", STRANGER)),
        (11, topic("a", STRANGER)),
        (10, topic(None)),
        (11, topic(None)),
        (12, topic(None)),
        (13, topic(None)),
    ],
)
def test_a_topic_that_cannot_be_meant_spoils_the_request(node: FakeNode, version: int, wanted: Any) -> None:
    node.have(a=1)
    response = node.ask(KEY, version, MetadataRequest(topics=[topic("a"), wanted]))
    assert [each.error_code for each in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
    assert response.topics[1].name == (wanted.name or "")
    assert (response.brokers, response.controller_id) == ([], -1)
    assert response.error_code == (ErrorCode.INVALID_REQUEST if version >= 13 else 0)


# --- auto creation


@EVERY_VERSION
def test_missing_topics_are_created_and_told_once_they_are_on_disk(tmp_path: Path, version: int) -> None:
    node = FakeNode(tmp_path, num_partitions=4)
    node.have(old=1)
    answers = Answers(KEY, version)
    node.start(answers, request("new", "old", create=True))
    assert answers.bodies == []
    assert node.names() == ["old"]
    node.thread.run_one()
    assert told(answers.only) == [("new", 0, 4), ("old", 0, 1)]
    assert node.names() == ["new", "old"]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 4])
def test_the_client_can_forbid_creation(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request("new", create=False))
    assert told(response) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert node.names() == []


@EVERY_VERSION
def test_so_can_the_setting(tmp_path: Path, version: int) -> None:
    node = FakeNode(tmp_path, auto_create_topics_enable=False)
    response = node.ask(KEY, version, request("new", create=True))
    assert told(response) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert node.thread.waiting == []


def test_asking_for_all_topics_or_by_id_creates_none(node: FakeNode) -> None:
    node.ask(KEY, 12, MetadataRequest(topics=None, allow_auto_topic_creation=True))
    node.ask(KEY, 12, MetadataRequest(topics=[topic(topic_id=STRANGER)], allow_auto_topic_creation=True))
    assert node.names() == []


def test_what_cannot_be_created_is_told_why_and_does_not_stop_the_rest(node: FakeNode) -> None:
    node.have(a_b=1)
    response = node.ask(KEY, 12, request("bad name", "a.b", "__cluster_metadata", "new", create=True))
    assert told(response) == [
        ("new", 0, 1),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("a.b", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("__cluster_metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]


def test_many_clients_asking_for_the_same_new_topic_make_one(node: FakeNode) -> None:
    clients = [Answers(KEY, 12) for _ in range(5)]
    for answers in clients:
        node.start(answers, request("new", create=True))
    node.thread.run_all()
    ids = {answers.only.topics[0].topic_id for answers in clients}
    created = node.catalogue.get("new")
    assert created is not None
    assert ids == {created.uuid}


def test_a_topic_that_cannot_be_kept_is_told_as_missing_so_that_the_client_asks_again(node: FakeNode) -> None:
    answers = Answers(KEY, 12)
    node.start(answers, request("new", create=True))
    node.thread.run_one(StorageFull("catalogue.json", "no space"))
    assert told(answers.only) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert node.names() == []


def test_one_request_creates_no_more_partitions_than_one_request_may(tmp_path: Path) -> None:
    half = DEFAULT_LIMITS.partitions_per_request // 2
    node = FakeNode(tmp_path, num_partitions=half)
    response = node.ask(KEY, 12, request("a", "b", "c", create=True))
    assert told(response) == [("a", 0, half), ("b", 0, half), ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_topic(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = error_response_of(KEY, version, request("a", "b"), error)
    assert told(response) == [("a", error, 0), ("b", error, 0)]
    assert response.brokers == []
    assert response.error_code == (error if version >= 13 else 0)


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 1])
def test_a_refused_request_for_all_topics_is_empty(version: int) -> None:
    response = error_response_of(KEY, version, MetadataRequest(topics=None), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert response.topics == []
