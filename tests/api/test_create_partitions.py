# SPDX-License-Identifier: Apache-2.0
"""CreatePartitions, at every version; the refusals are those of a Kafka 4.4 broker."""

from typing import Any

import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import CreatePartitionsRequest
from storage.errors import StorageFull
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.CREATE_PARTITIONS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))


def topic(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    rows = (
        None if assignments is None else [kind.CreatePartitionsAssignment(broker_ids=b) for b in assignments]
    )
    return kind(name=name, count=count, assignments=rows)


def request(*topics: Any, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=0, validate_only=validate_only)


def told(response: Any) -> list[tuple[str, int]]:
    return [(each.name, each.error_code) for each in response.results]


def partitions(node: FakeNode, name: str) -> int:
    found = node.catalogue.get(name)
    assert found is not None
    return found.partitions


@EVERY_VERSION
def test_partitions_are_there_and_told_once_they_are_on_disk(node: FakeNode, version: int) -> None:
    node.have(a=1, b=1)
    answers = Answers(KEY, version)
    node.start(answers, request(topic("b", 4), topic("a", 2, [[7]])))
    assert (answers.bodies, partitions(node, "a")) == ([], 1)
    node.thread.run_one()
    assert told(answers.only) == [("b", 0), ("a", 0)]
    assert answers.only.results[0].error_message is None
    assert (partitions(node, "a"), partitions(node, "b")) == (2, 4)


@EVERY_VERSION
def test_validation_changes_nothing(node: FakeNode, version: int) -> None:
    node.have(a=1)
    response = node.ask(KEY, version, request(topic("a", 2), topic("b", 2), validate_only=True))
    assert told(response) == [("a", 0), ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert partitions(node, "a") == 1


def test_repeated_names_are_refused_once_and_first(node: FakeNode) -> None:
    node.have(a=1, b=1)
    response = node.ask(KEY, 3, request(topic("b", 2), topic("a", 2), topic("a", 3)))
    assert told(response) == [("a", ErrorCode.INVALID_REQUEST), ("b", 0)]
    assert partitions(node, "a") == 1


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (topic("a", 2), ErrorCode.INVALID_PARTITIONS, "already has 2 partition(s)"),
        (topic("a", 2, [[7]]), ErrorCode.INVALID_PARTITIONS, "already has 2 partition(s)"),
        (topic("a", 1), ErrorCode.INVALID_PARTITIONS, "1 would not be an increase"),
        (topic("a", -1), ErrorCode.INVALID_PARTITIONS, "-1 would not be an increase"),
        (topic("a", 10_003), ErrorCode.POLICY_VIOLATION, "10000 partitions"),
        (topic("a", 2**31 - 1), ErrorCode.POLICY_VIOLATION, "10000 partitions"),
        (topic("a", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "0 assignment(s)"),
        (topic("a", 3, [[7], [7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "2 assignment(s)"),
        (topic("a", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        (topic("a", 3, [[8]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 8"),
        (topic("a", 3, [[7, 7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (topic(OFFSETS_TOPIC, 51), ErrorCode.INVALID_REQUEST, "place every group"),
        (topic("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (topic("b d", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (topic("__cluster_metadata", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ],
)
def test_each_refusal_has_its_code_and_says_why(
    node: FakeNode, wanted: Any, error: ErrorCode, message: str | None
) -> None:
    node.have(a=2)
    before = list(node.catalogue)
    for version in versions(KEY):
        (answer,) = node.ask(KEY, version, request(wanted)).results
        assert (answer.name, answer.error_code) == (wanted.name, error)
        assert (answer.error_message is None) if message is None else (message in answer.error_message)
    assert list(node.catalogue) == before


def test_the_bound_is_for_all_topics_of_a_request_together(node: FakeNode) -> None:
    node.have(a=1, b=1, c=1)
    response = node.ask(KEY, 3, request(topic("a", 6_001), topic("b", 4_002), topic("c", 4_001)))
    assert told(response) == [("a", 0), ("b", ErrorCode.POLICY_VIOLATION), ("c", 0)]


@EVERY_VERSION
def test_a_disk_that_fails_is_an_error_to_try_again_on(node: FakeNode, version: int) -> None:
    node.have(a=1)
    answers = Answers(KEY, version)
    node.start(answers, request(topic("a", 2)))
    node.thread.run_one(StorageFull("catalogue.json", "no space"))
    assert told(answers.only) == [("a", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert partitions(node, "a") == 1


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_topic(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert told(error_response_of(KEY, version, request(topic("a", 2)), error)) == [("a", error)]
