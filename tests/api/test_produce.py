# SPDX-License-Identifier: Apache-2.0
"""Produce, at every version: offered, and refused."""

import uuid
from typing import Any

import pytest

from coordinator.api.produce import WHY
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.kafka_python_messages import ProduceRequest
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.PRODUCE
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
BY_NAME = pytest.mark.parametrize("version", [v for v in versions(KEY) if v < 13])
BY_ID = pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 13])
STRANGER = uuid.UUID(int=9 << 64)


def topic(name: str, topic_id: uuid.UUID | None, *partitions: int) -> Any:
    kind: Any = ProduceRequest.TopicProduceData
    data = [kind.PartitionProduceData(index=index, records=b"r") for index in partitions]
    return kind(name=name, topic_id=topic_id, partition_data=data)


def request(*topics: Any, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1_000, topic_data=list(topics))


def told(response: Any) -> list[tuple[int, int]]:
    return [(p.index, p.error_code) for each in response.responses for p in each.partition_responses]


@EVERY_VERSION
@pytest.mark.parametrize("acks", [-1, 1])
def test_every_partition_is_refused_for_good(node: FakeNode, version: int, acks: int) -> None:
    topic_id = node.have(a=2)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, 1, 0), acks=acks))
    (answer,) = response.responses
    if version < 13:
        assert answer.name == "a"
    else:
        assert answer.topic_id == topic_id
    assert told(response) == [(1, ErrorCode.POLICY_VIOLATION), (0, ErrorCode.POLICY_VIOLATION)]
    for each in answer.partition_responses:
        assert (each.base_offset, each.log_append_time_ms, each.log_start_offset) == (-1, -1, -1)
        assert each.error_message == (WHY if version >= 8 else None)
        assert each.record_errors == []
        assert each.current_leader is None


@EVERY_VERSION
def test_partitions_that_are_not_there(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=2)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, 2, -1), acks=7))
    assert told(response) == [
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@BY_NAME
def test_a_topic_that_is_not_there(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request(topic("b", None, 0)))
    assert told(response) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@BY_ID
@pytest.mark.parametrize("topic_id", [STRANGER, None])
def test_an_id_that_is_not_there(node: FakeNode, version: int, topic_id: uuid.UUID | None) -> None:
    response = node.ask(KEY, version, request(topic("", topic_id, 0)))
    assert told(response) == [(0, ErrorCode.UNKNOWN_TOPIC_ID)]


@EVERY_VERSION
def test_acks_that_kafka_does_not_know(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, 0), acks=2))
    assert told(response) == [(0, ErrorCode.INVALID_REQUIRED_ACKS)]


@EVERY_VERSION
def test_without_acks_nobody_reads_an_answer(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    answers = Answers(KEY, version)
    with pytest.raises(ProtocolError, match="keeps no records"):
        node.start(answers, request(topic("a", topic_id, 0), acks=0))
    assert answers.bodies == []


@EVERY_VERSION
def test_an_error_for_everything(version: int) -> None:
    wanted = request(topic("a", STRANGER, 0, 1), topic("b", STRANGER, 2))
    response = error_response_of(KEY, version, wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert told(response) == [(index, ErrorCode.UNKNOWN_SERVER_ERROR) for index in (0, 1, 2)]
