# SPDX-License-Identifier: Apache-2.0
"""DeleteTopics, at every version; the refusals are those of a Kafka 4.4 broker."""

import uuid
from typing import Any

import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DeleteTopicsRequest
from storage.errors import StorageFull
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.DELETE_TOPICS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
STRANGER = uuid.UUID(int=7 << 64)


def by_name(version: int, *names: str) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=0)
    return by_either(*((name, None) for name in names))


def by_either(*topics: tuple[str | None, uuid.UUID | None]) -> DeleteTopicsRequest:
    kind: Any = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(
        topics=[kind(name=name, topic_id=topic_id) for name, topic_id in topics], timeout_ms=0
    )


def told(response: Any) -> list[tuple[str | None, int]]:
    return [(each.name, each.error_code) for each in response.responses]


@EVERY_VERSION
def test_topics_are_gone_and_told_once_that_is_on_disk(node: FakeNode, version: int) -> None:
    topics = node.have(a=1, b=1, c=1)
    reports: list[list[str]] = []
    node.catalogue_store.on_topics_deleted = lambda names: reports.append(list(names))
    answers = Answers(KEY, version)
    node.start(answers, by_name(version, "c", "nope", "a"))
    assert (answers.bodies, node.names(), reports) == ([], ["a", "b", "c"], [])
    node.thread.run_one()
    assert told(answers.only) == [("c", 0), ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a", 0)]
    assert (node.names(), reports) == (["b"], [["c", "a"]])
    first, missing, _ = answers.only.responses
    assert first.topic_id == (topics["c"].uuid if version >= 6 else None)
    if version >= 5:
        assert (first.error_message, missing.error_message) == (None, "There is no topic 'nope'.")


@EVERY_VERSION
def test_repeated_names_are_refused_once_and_stay(node: FakeNode, version: int) -> None:
    node.have(a=1, b=1)
    response = node.ask(KEY, version, by_name(version, "nope", "a", "b", "nope", "a", "a"))
    invalid = ErrorCode.INVALID_REQUEST
    assert told(response) == [("nope", invalid), ("a", invalid), ("b", 0)]
    assert node.names() == ["a"]


@EVERY_VERSION
def test_the_offsets_topic_stays(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, by_name(version, OFFSETS_TOPIC))
    assert told(response) == [(OFFSETS_TOPIC, ErrorCode.INVALID_REQUEST)]
    assert OFFSETS_TOPIC in node.catalogue


def test_topics_are_deleted_by_id(node: FakeNode) -> None:
    topics = node.have(a=1, b=1, c=1)
    response = node.ask(
        KEY, 6, by_either((None, topics["a"].uuid), (None, STRANGER), ("b", None), ("c d", None))
    )
    assert told(response) == [
        ("a", 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("b", 0),
        ("c d", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    ids = [topics["a"].uuid, STRANGER, topics["b"].uuid, None]
    assert [each.topic_id for each in response.responses] == ids
    assert node.names() == ["c"]


def test_what_can_mean_nothing_or_two_things_is_refused(node: FakeNode) -> None:
    topics = node.have(a=1)
    response = node.ask(KEY, 6, by_either((None, None), ("a", topics["a"].uuid)))
    assert told(response) == [(None, ErrorCode.INVALID_REQUEST), ("a", ErrorCode.INVALID_REQUEST)]
    assert response.responses[0].error_message == "Neither topic name nor id were specified."
    assert response.responses[1].topic_id == topics["a"].uuid
    assert node.names() == ["a"]


def test_a_bad_way_of_asking_does_not_count_as_the_second(node: FakeNode) -> None:
    topics = node.have(a=1)
    response = node.ask(KEY, 6, by_either(("a", topics["a"].uuid), ("a", None)))
    assert told(response) == [("a", ErrorCode.INVALID_REQUEST), ("a", 0)]
    assert node.names() == []


def test_a_repeated_id_is_refused_once(node: FakeNode) -> None:
    topics = node.have(a=1)
    response = node.ask(KEY, 6, by_either((None, topics["a"].uuid), (None, topics["a"].uuid)))
    assert told(response) == [(None, ErrorCode.INVALID_REQUEST)]
    assert response.responses[0].topic_id == topics["a"].uuid
    assert node.names() == ["a"]


def test_the_same_topic_by_name_and_by_id_is_answered_once_and_stays(node: FakeNode) -> None:
    topics = node.have(a=1, b=1)
    response = node.ask(KEY, 6, by_either((None, topics["a"].uuid), ("b", None), ("a", None)))
    assert told(response) == [("b", 0), ("a", ErrorCode.INVALID_REQUEST)]
    assert response.responses[1].topic_id == topics["a"].uuid
    assert node.names() == ["a"]


@EVERY_VERSION
def test_nothing_asked_is_nothing_told(node: FakeNode, version: int) -> None:
    assert node.ask(KEY, version, by_name(version)).responses == []


@EVERY_VERSION
def test_a_disk_that_fails_is_an_error_to_try_again_on(node: FakeNode, version: int) -> None:
    node.have(a=1)
    reports: list[object] = []
    node.catalogue_store.on_topics_deleted = reports.append
    answers = Answers(KEY, version)
    node.start(answers, by_name(version, "a"))
    node.thread.run_one(StorageFull("catalogue.json", "no space"))
    assert told(answers.only) == [("a", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert (node.names(), reports) == (["a"], [])


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_topic(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert told(error_response_of(KEY, version, by_name(version, "a", "b"), error)) == [
        ("a", error),
        ("b", error),
    ]
