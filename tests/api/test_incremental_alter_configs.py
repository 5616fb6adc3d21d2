# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs, at every version; what Kafka 4.4 answers is in the differential scenarios."""

from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic_configs import END_GROUP
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import IncrementalAlterConfigsRequest
from storage.errors import StorageFull
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC) -> Any:
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    rows = [
        cls.AlterableConfig(name=name, config_operation=operation, value=value)
        for name, operation, value in changes
    ]
    return cls(resource_type=kind, resource_name=name, configs=rows)


def request(*resources: Any, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)


def told(response: Any) -> list[tuple[str, int]]:
    return [(each.resource_name, each.error_code) for each in response.responses]


def configs(node: FakeNode, name: str) -> Mapping[str, str]:
    found = node.catalogue.get(name)
    assert found is not None
    return found.configs


@EVERY_VERSION
def test_settings_are_there_and_told_once_they_are_on_disk(node: FakeNode, version: int) -> None:
    node.have(a=1, b=1)
    answers = Answers(KEY, version)
    change = (END_GROUP, SET, "makers")
    node.start(answers, request(resource("b", change), resource("a", change, ("flush.ms", SET, "1"))))
    assert (answers.bodies, configs(node, "a")) == ([], {})
    node.thread.run_one()
    assert told(answers.only) == [("b", 0), ("a", 0)]
    assert answers.only.responses[0].error_message is None
    assert (configs(node, "a"), configs(node, "b")) == (
        {END_GROUP: "makers", "flush.ms": "1"},
        {END_GROUP: "makers"},
    )
    node.ask(KEY, version, request(resource("a", (END_GROUP, DELETE, None))))
    assert configs(node, "a") == {"flush.ms": "1"}


@EVERY_VERSION
def test_a_topic_gets_all_of_its_changes_or_none_and_others_theirs(node: FakeNode, version: int) -> None:
    node.have(a=1, b=1)
    good = ("flush.ms", SET, "1")
    response = node.ask(
        KEY, version, request(resource("a", good, ("retention.ms", SET, "x")), resource("b", good))
    )
    assert told(response) == [("a", ErrorCode.INVALID_CONFIG), ("b", 0)]
    assert (configs(node, "a"), configs(node, "b")) == ({}, {"flush.ms": "1"})


@EVERY_VERSION
def test_validation_changes_nothing(node: FakeNode, version: int) -> None:
    node.have(a=1)
    wanted = request(resource("a", ("flush.ms", SET, "1")), validate_only=True)
    assert told(node.ask(KEY, version, wanted)) == [("a", 0)]
    assert configs(node, "a") == {}


@EVERY_VERSION
@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (resource("7", ("num.partitions", SET, "1"), kind=BROKER), ErrorCode.INVALID_REQUEST),
        (resource("g", kind=32), ErrorCode.INVALID_REQUEST),
        (resource(OFFSETS_TOPIC, ("flush.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource("nope", ("flush.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource("a", ("flush.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (resource("a", ("flush.ms", SET, "1"), ("flush.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource("a", (END_GROUP, APPEND, "1")), ErrorCode.INVALID_CONFIG),
    ],
    ids=str,
)
def test_what_cannot_be_changed(node: FakeNode, version: int, wanted: Any, error: ErrorCode) -> None:
    node.have(a=1)
    assert [code for _, code in told(node.ask(KEY, version, request(wanted)))] == [error]
    assert configs(node, "a") == {}


@EVERY_VERSION
def test_a_full_disk_is_told_and_changes_nothing(node: FakeNode, version: int) -> None:
    node.have(a=1)
    answers = Answers(KEY, version)
    node.start(answers, request(resource("a", ("flush.ms", SET, "1"))))
    node.thread.run_one(StorageFull("catalogue.json", "no space"))
    assert told(answers.only) == [("a", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert configs(node, "a") == {}


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_resource(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    asked = request(resource("a"), resource("7", kind=BROKER))
    assert told(error_response_of(KEY, version, asked, error)) == [("a", error), ("7", error)]
