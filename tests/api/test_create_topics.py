# SPDX-License-Identifier: Apache-2.0
"""CreateTopics, at every version; the refusals are those that a Kafka 4.4 broker gave to the same requests."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic_configs import END_GROUP, TOPIC_CONFIGS
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import CreateTopicsRequest
from storage.errors import StorageFull
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.CREATE_TOPICS
KAFKAS = sorted(key.name for key in TOPIC_CONFIGS.values() if not key.ours)
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
HERE = [7]


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Sequence[tuple[int, list[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> Any:
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def request(*topics: Any, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=0, validate_only=validate_only)


def told(response: Any) -> list[tuple[str, int]]:
    return [(each.name, each.error_code) for each in response.topics]


@EVERY_VERSION
def test_topics_are_created_and_told_once_they_are_on_disk(node: FakeNode, version: int) -> None:
    answers = Answers(KEY, version)
    node.start(answers, request(topic("b", 3), topic("a", -1, -1)))
    assert (answers.bodies, node.names()) == ([], [])
    node.thread.run_one()
    response = answers.only
    assert told(response) == [("b", 0), ("a", 0)]
    assert [each.error_message for each in response.topics] == [None, None]
    assert [(each.name, each.partitions) for each in node.catalogue] == [
        (OFFSETS_TOPIC, 50),
        ("a", 1),
        ("b", 3),
    ]
    created = node.catalogue.get("b")
    assert created is not None
    if version >= 5:
        assert [(each.num_partitions, each.replication_factor) for each in response.topics] == [
            (3, 1),
            (1, 1),
        ]
    if version >= 7:
        assert response.topics[0].topic_id == created.uuid


@pytest.mark.parametrize("version", [5, 6, 7])
def test_all_settings_of_a_new_topic_are_told_as_they_were_written(node: FakeNode, version: int) -> None:
    configs = {"retention.ms": " 5 ", "unclean.leader.election.enable": "TRUE"}
    (answer,) = node.ask(KEY, version, request(topic("a", configs=configs))).topics
    assert answer.topic_config_error_code == 0
    assert [each.name for each in answer.configs] == KAFKAS
    values = {each.name: (each.value, each.config_source) for each in answer.configs}
    assert values["retention.ms"] == (" 5 ", 1)
    assert values["unclean.leader.election.enable"] == ("TRUE", 1)
    assert values["segment.ms"] == ("604800000", 5)
    assert not any(each.read_only or each.is_sensitive for each in answer.configs)
    kept = node.catalogue.get("a")
    assert kept is not None
    assert kept.configs == configs


def test_a_setting_that_kafka_does_not_know_is_told_where_it_is_set(node: FakeNode) -> None:
    (answer,) = node.ask(KEY, 7, request(topic("a", configs={END_GROUP: "makers"}))).topics
    assert [each.name for each in answer.configs] == sorted([*KAFKAS, END_GROUP])
    assert [each.value for each in answer.configs if each.name == END_GROUP] == ["makers"]
    (answer,) = node.ask(KEY, 7, request(topic("b", configs={END_GROUP: "m" * 250}))).topics
    assert answer.error_code == ErrorCode.INVALID_CONFIG


@EVERY_VERSION
def test_validation_creates_nothing(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request(topic("a"), topic("b c"), validate_only=True))
    assert told(response) == [("a", 0), ("b c", ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert node.names() == []


@EVERY_VERSION
def test_a_bad_topic_does_not_stop_the_others(node: FakeNode, version: int) -> None:
    node.have(there=1)
    response = node.ask(KEY, version, request(topic("there"), topic("new"), topic("")))
    assert told(response) == [
        ("there", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("new", 0),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert response.topics[0].error_message == "Topic 'there' already exists."
    if version >= 5:
        refused = response.topics[0]
        assert (refused.num_partitions, refused.replication_factor, refused.configs) == (-1, -1, [])
    assert node.names() == ["new", "there"]


def test_repeated_names_are_refused_once_and_last(node: FakeNode) -> None:
    response = node.ask(KEY, 7, request(topic("d"), topic("d", 2), topic("e"), topic("d")))
    assert told(response) == [("e", 0), ("d", ErrorCode.INVALID_REQUEST)]
    assert node.names() == ["e"]


def test_colliding_names_of_one_request_do_not_get_past_each_other(node: FakeNode) -> None:
    response = node.ask(KEY, 7, request(topic("a.b"), topic("a_b")))
    assert told(response) == [("a.b", 0), ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION)]


REFUSED = [
    (topic("my.topic"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: my_topic"),
    (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "max allowed length is 249"),
    (topic(OFFSETS_TOPIC), ErrorCode.TOPIC_ALREADY_EXISTS, "already exists"),
    (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "internal topic"),
    (topic("t", 0), ErrorCode.INVALID_PARTITIONS, "Number of partitions"),
    (topic("t", -2), ErrorCode.INVALID_PARTITIONS, "Number of partitions"),
    (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0, or -1"),
    (topic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0, or -1"),
    (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0, or -1"),
    (topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, "replicate the partition 2 time(s)"),
    (topic("t", 10_001), ErrorCode.POLICY_VIOLATION, "10000 partitions"),
    (topic("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION, "10000 partitions"),
    (topic("t", configs={"foo": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
    (topic("t", configs={"flush.ms": None, "foo": None}), ErrorCode.INVALID_CONFIG, "configs: flush.ms,foo"),
    (topic("t", 0, configs={"flush.ms": "x"}), ErrorCode.INVALID_CONFIG, "Not a number of type LONG"),
    (topic("t t", 0, configs={"flush.ms": "x"}), ErrorCode.INVALID_TOPIC_EXCEPTION, "one or more characters"),
    (topic("t", 2, -1, [(0, HERE), (1, HERE)]), ErrorCode.INVALID_REQUEST, "manual partition assignment"),
    (topic("t", -1, 1, [(0, HERE)]), ErrorCode.INVALID_REQUEST, "manual partition assignment"),
    (topic("t", -1, -1, [(0, HERE), (0, HERE)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "for partition 0"),
    (topic("t", -1, -1, [(0, HERE), (2, HERE)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "without gaps"),
    (topic("t", -1, -1, [(-1, HERE)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "without gaps"),
    (topic("t", -1, -1, [(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
    (topic("t", -1, -1, [(0, [8])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 8, but no such broker"),
    (topic("t", -1, -1, [(0, [7, 8])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 8, but no such broker"),
    (topic("t", -1, -1, [(0, [7, 7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 7 more than once"),
]


@pytest.mark.parametrize(("wanted", "error", "message"), REFUSED)
def test_each_refusal_has_its_code_and_says_why(
    node: FakeNode, wanted: Any, error: ErrorCode, message: str
) -> None:
    node.have(my_topic=1)
    for version in versions(KEY):
        (answer,) = node.ask(KEY, version, request(wanted)).topics
        assert (answer.name, answer.error_code) == (wanted.name, error)
        assert message in answer.error_message
    assert node.names() == ["my_topic"]


def test_partitions_can_be_assigned_by_hand(node: FakeNode) -> None:
    wanted = topic("t", -1, -1, [(1, HERE), (0, HERE), (2, HERE)])
    (answer,) = node.ask(KEY, 7, request(wanted)).topics
    assert (answer.error_code, answer.num_partitions) == (0, 3)


def test_the_bound_on_partitions_is_for_all_topics_of_a_request_together(node: FakeNode) -> None:
    response = node.ask(KEY, 7, request(topic("a", 6_000), topic("b", 4_001), topic("c d")))
    assert told(response) == [
        ("a", ErrorCode.POLICY_VIOLATION),
        ("b", ErrorCode.POLICY_VIOLATION),
        ("c d", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert told(node.ask(KEY, 7, request(topic("a", 6_000), topic("b", 4_000)))) == [("a", 0), ("b", 0)]


@EVERY_VERSION
def test_a_message_that_quotes_a_huge_name_still_fits_into_the_response(node: FakeNode, version: int) -> None:
    huge = "x" * 32_000
    response = node.ask(KEY, version, request(topic(huge), topic("t", configs={huge: "1"})))
    assert [each.error_code for each in response.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_CONFIG,
    ]
    assert all(len(each.error_message) < 2_000 for each in response.topics)


@EVERY_VERSION
def test_a_disk_that_fails_is_an_error_to_try_again_on(node: FakeNode, version: int) -> None:
    answers = Answers(KEY, version)
    node.start(answers, request(topic("a"), topic("b b")))
    node.thread.run_one(StorageFull("catalogue.json", "no space"))
    assert told(answers.only) == [
        ("a", ErrorCode.KAFKA_STORAGE_ERROR),
        ("b b", ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    assert node.names() == []


@EVERY_VERSION
def test_nothing_asked_is_nothing_told(node: FakeNode, version: int) -> None:
    assert node.ask(KEY, version, request()).topics == []


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_topic(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert told(error_response_of(KEY, version, request(topic("a"), topic("b")), error)) == [
        ("a", error),
        ("b", error),
    ]


def test_a_mistake_of_ours_is_an_answer_too(node: FakeNode) -> None:
    taken = node.have(there=1)["there"].id
    node.catalogue_store.new_topic_id = lambda: taken
    assert told(node.ask(KEY, 7, request(topic("a")))) == [("a", ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert node.names() == ["there"]
