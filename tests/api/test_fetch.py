# SPDX-License-Identifier: Apache-2.0
"""Fetch, at every version: a poll that waits, and what it does not wait for."""

import uuid
from typing import Any

import pytest

from coordinator.api.fetch import WAIT_MS_MAX
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchRequest
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.FETCH
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
FROM_7 = pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 7])
BY_NAME = pytest.mark.parametrize("version", [v for v in versions(KEY) if v < 13])
BY_ID = pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 13])
STRANGER = uuid.UUID(int=9 << 64)


def partition(index: int, offset: int = 0, epoch: int = -1) -> Any:
    return FetchRequest.FetchTopic.FetchPartition(
        partition=index, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )


def topic(name: str, topic_id: uuid.UUID | None, *partitions: Any) -> Any:
    kind: Any = FetchRequest.FetchTopic
    return kind(topic=name, topic_id=topic_id, partitions=list(partitions))


def request(*topics: Any, wait_ms: int = 500, min_bytes: int = 1, **fields: Any) -> FetchRequest:
    return FetchRequest(
        **{"replica_id": -1, "session_epoch": -1, "rack_id": "", **fields},
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=list(topics),
        forgotten_topics_data=[],
    )


def told(response: Any) -> list[tuple[int, int]]:
    return [(p.partition_index, p.error_code) for each in response.responses for p in each.partitions]


def delays(node: FakeNode) -> list[int]:
    return [call[0] for call in node.timers.calls]


@EVERY_VERSION
def test_a_poll_is_answered_empty_after_the_time_it_may_wait(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=2)["a"].uuid
    answers = Answers(KEY, version)
    node.start(answers, request(topic("a", topic_id, partition(0), partition(1))))
    assert (answers.bodies, delays(node)) == ([], [500])
    node.timers.fire()
    response = answers.only
    assert (response.error_code, response.session_id) == (0, 0)
    (answer,) = response.responses
    if version < 13:
        assert answer.topic == "a"
    else:
        assert answer.topic_id == topic_id
    assert told(response) == [(0, 0), (1, 0)]
    for each in answer.partitions:
        assert (each.high_watermark, each.last_stable_offset) == (0, 0)
        assert each.log_start_offset == (0 if version >= 5 else -1)
        assert bytes(each.records) == b""
        assert each.aborted_transactions is None
        assert each.preferred_read_replica == -1
        assert each.diverging_epoch is each.current_leader is None


def test_an_empty_answer_has_the_bytes_that_kafka_sends(node: FakeNode) -> None:
    topic_id = node.have(a=1)["a"].uuid
    answers = Answers(KEY, 17)
    node.start(answers, request(topic("a", topic_id, partition(0)), wait_ms=0))
    partition_bytes = bytes(4) + bytes(2) + bytes(24) + b"\x00" + b"\xff\xff\xff\xff" + b"\x01" + b"\x00"
    assert answers.bodies == [
        bytes(4) + bytes(2) + bytes(4) + b"\x02" + topic_id.bytes + b"\x02" + partition_bytes + b"\x00\x00"
    ]


@EVERY_VERSION
def test_any_offset_is_the_end_of_the_partition(node: FakeNode, version: int) -> None:
    """Kafka would say OFFSET_OUT_OF_RANGE, and consumers would jump to 0 and commit that."""
    topic_id = node.have(a=1)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, partition(0, offset=4_711))))
    (answer,) = response.responses[0].partitions
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 4_711, 4_711)


@EVERY_VERSION
def test_no_poll_waits_for_ever(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    node.start(Answers(KEY, version), request(topic("a", topic_id, partition(0)), wait_ms=2**31 - 1))
    assert delays(node) == [WAIT_MS_MAX]


@EVERY_VERSION
@pytest.mark.parametrize("fields", [{"wait_ms": 0}, {"wait_ms": -1}, {"min_bytes": 0}, {"min_bytes": -1}])
def test_who_does_not_want_to_wait_does_not(node: FakeNode, version: int, fields: dict[str, int]) -> None:
    topic_id = node.have(a=1)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, partition(0)), **fields))
    assert told(response) == [(0, 0)]
    assert delays(node) == []


@EVERY_VERSION
def test_a_poll_of_nothing_is_answered_at_once(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    for nothing in (request(), request(topic("a", topic_id))):
        answers = Answers(KEY, version)
        node.start(answers, nothing)
        assert answers.only.responses == []


@EVERY_VERSION
@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (partition(1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (partition(-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (partition(0, offset=-1), ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_an_error_is_told_at_once(node: FakeNode, version: int, wanted: Any, error: ErrorCode) -> None:
    topic_id = node.have(a=1)["a"].uuid
    answers = Answers(KEY, version)
    node.start(answers, request(topic("a", topic_id, partition(0), wanted)))
    assert told(answers.only) == [(0, 0), (wanted.partition, error)]
    refused = answers.only.responses[0].partitions[1]
    assert (refused.high_watermark, refused.last_stable_offset) == (-1, -1)
    assert bytes(refused.records) == b""


@BY_NAME
def test_an_unknown_name_is_told(node: FakeNode, version: int) -> None:
    response = node.ask(KEY, version, request(topic("nope", None, partition(0), partition(1))))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told(response) == [(0, unknown), (1, unknown)]


@BY_ID
@pytest.mark.parametrize("topic_id", [STRANGER, None])
def test_an_unknown_id_is_told(node: FakeNode, version: int, topic_id: uuid.UUID | None) -> None:
    node.have(a=1)
    response = node.ask(KEY, version, request(topic("a", topic_id, partition(0))))
    assert told(response) == [(0, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert response.responses[0].topic_id == topic_id


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 9])
@pytest.mark.parametrize(("epoch", "error"), [(5, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, 0), (-1, 0), (-2, 0)])
def test_clients_with_a_later_leader_epoch_are_told(
    node: FakeNode, version: int, epoch: int, error: int
) -> None:
    topic_id = node.have(a=1)["a"].uuid
    response = node.ask(KEY, version, request(topic("a", topic_id, partition(0, epoch=epoch))))
    assert told(response) == [(0, error)]


@EVERY_VERSION
def test_nobody_replicates_from_here(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    follower: dict[str, Any] = {"replica_id": 3}
    if version >= 15:
        follower = {"replica_state": FetchRequest.ReplicaState(replica_id=3, replica_epoch=1)}
    response = node.ask(KEY, version, request(topic("a", topic_id, partition(0)), **follower))
    assert told(response) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


@EVERY_VERSION
def test_a_topic_that_is_deleted_meanwhile_is_told_in_the_end(node: FakeNode, version: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    answers = Answers(KEY, version)
    node.start(answers, request(topic("a", topic_id, partition(0))))
    node.catalogue.remove_topic("a")
    node.timers.fire()
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 13 else ErrorCode.UNKNOWN_TOPIC_ID
    assert told(answers.only) == [(0, gone)]


@FROM_7
@pytest.mark.parametrize("session_id", [0, 77])
def test_full_fetches_open_no_session(node: FakeNode, version: int, session_id: int) -> None:
    topic_id = node.have(a=1)["a"].uuid
    for epoch in (0, -1):
        response = node.ask(
            KEY,
            version,
            request(topic("a", topic_id, partition(0)), session_id=session_id, session_epoch=epoch),
        )
        assert (response.error_code, response.session_id, told(response)) == (0, 0, [(0, 0)])


@FROM_7
@pytest.mark.parametrize("epoch", [1, 3, -2])
def test_there_is_no_session_to_go_on_with(node: FakeNode, version: int, epoch: int) -> None:
    answers = Answers(KEY, version)
    node.start(answers, request(session_id=77, session_epoch=epoch))
    assert answers.only.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert answers.only.responses == []


@EVERY_VERSION
def test_a_refused_poll_has_the_error_where_its_version_has_room_for_it(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = error_response_of(
        KEY, version, request(topic("a", STRANGER, partition(0), partition(1))), error
    )
    if version >= 7:
        assert (response.error_code, response.responses) == (error, [])
    else:
        assert told(response) == [(0, error), (1, error)]
