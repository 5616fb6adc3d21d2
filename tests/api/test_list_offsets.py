# SPDX-License-Identifier: Apache-2.0
"""ListOffsets, at every version; before anybody commits, the answers are a Kafka 4.3's for empty partitions."""

from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import ListOffsetsRequest
from tests.api.asking import Answers, FakeNode, refusal_of, versions

KEY = ApiKey.LIST_OFFSETS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
LATEST, EARLIEST = -1, -2


def request(name: str, *partitions: tuple[int, int], epoch: int = -1) -> ListOffsetsRequest:
    kind = ListOffsetsRequest.ListOffsetsTopic
    rows = [
        kind.ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index, timestamp in partitions
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[kind(name=name, partitions=rows)])


def told(response: Any) -> list[tuple[int, int, int, int, int]]:
    (topic,) = response.topics
    return [
        (p.partition_index, p.error_code, p.timestamp, p.offset, p.leader_epoch) for p in topic.partitions
    ]


@EVERY_VERSION
def test_a_partition_that_nobody_has_committed_in_starts_and_ends_at_zero(
    node: FakeNode, version: int
) -> None:
    node.have(a=3)
    response = node.ask(KEY, version, request("a", (2, LATEST), (0, EARLIEST)))
    epoch = 0 if version >= 4 else -1
    assert told(response) == [(2, 0, -1, 0, epoch), (0, 0, -1, 0, epoch)]


@EVERY_VERSION
def test_a_partition_ends_at_the_furthest_committed_offset(node: FakeNode, version: int) -> None:
    node.have(a=4)
    node.manager.commit("slow", "a", {0: 5, 1: 9, 2: 0})
    node.manager.commit("fast", "a", {0: 41, 1: 7})
    node.manager.commit("elsewhere", "b", {0: 1_000, 3: 1_000})
    answer = told(node.ask(KEY, version, request("a", *((index, LATEST) for index in range(4)))))
    assert [each[:4] for each in answer] == [(0, 0, -1, 41), (1, 0, -1, 9), (2, 0, -1, 0), (3, 0, -1, 0)]
    answer = told(node.ask(KEY, version, request("a", (0, EARLIEST), (1, LATEST))))
    assert [each[3] for each in answer] == [0, 9]


def test_the_end_is_told_only_once_the_commits_that_it_shows_are_durable(node: FakeNode) -> None:
    node.have(a=1)
    node.manager.commit("g", "a", {0: 5}, flush=17)
    node.manager.commit("h", "a", {0: 4}, flush=16)
    node.manager.commit("elsewhere", "b", {0: 5}, flush=99)
    assert node.start(Answers(KEY, 11), request("a", (0, LATEST))).flush == 17
    assert node.start(Answers(KEY, 11), request("a", (0, EARLIEST))).flush == 0


@EVERY_VERSION
def test_the_end_is_not_told_while_groups_are_still_coming_from_the_log(node: FakeNode, version: int) -> None:
    node.have(a=1)
    node.manager.loading_partitions[3] = "a shard"
    not_yet = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert told(node.ask(KEY, version, request("a", (0, LATEST)))) == [(0, not_yet, -1, -1, -1)]
    assert told(node.ask(KEY, version, request("a", (0, EARLIEST))))[0][:4] == (0, 0, -1, 0)


@EVERY_VERSION
@pytest.mark.parametrize("timestamp", [0, 1, 2**63 - 1])
def test_no_timestamp_is_found(node: FakeNode, version: int, timestamp: int) -> None:
    node.have(a=1)
    assert told(node.ask(KEY, version, request("a", (0, timestamp)))) == [(0, 0, -1, -1, -1)]


@EVERY_VERSION
@pytest.mark.parametrize(("place", "since", "offset"), [(-3, 7, -1), (-4, 8, 0), (-5, 9, -1), (-6, 11, -1)])
def test_other_places_exist_from_their_version_on(
    node: FakeNode, version: int, place: int, since: int, offset: int
) -> None:
    node.have(a=1)
    answer = told(node.ask(KEY, version, request("a", (0, place))))
    if version < since:
        assert answer == [(0, ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)]
    else:
        assert answer == [(0, 0, -1, offset, offset)]


@EVERY_VERSION
def test_unknown_places_are_an_unsupported_version(node: FakeNode, version: int) -> None:
    node.have(a=1)
    answer = told(node.ask(KEY, version, request("a", (0, -7))))
    assert answer == [(0, ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)]


@EVERY_VERSION
def test_what_does_not_exist_is_told_for_each_partition(node: FakeNode, version: int) -> None:
    node.have(a=1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wanted = [(0, LATEST), (1, LATEST), (-1, LATEST)]
    answer = told(node.ask(KEY, version, request("a", *wanted)))
    assert [each[:2] for each in answer] == [(0, 0), (1, unknown), (-1, unknown)]
    assert answer[1] == (1, unknown, -1, -1, -1)
    answer = told(node.ask(KEY, version, request("nope", *wanted)))
    assert [each[1] for each in answer] == [unknown] * 3


@EVERY_VERSION
def test_a_partition_that_is_asked_for_twice_is_refused_once(node: FakeNode, version: int) -> None:
    node.have(a=2)
    answer = told(node.ask(KEY, version, request("a", (0, LATEST), (1, LATEST), (0, EARLIEST))))
    assert [each[:2] for each in answer] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 4])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, 0), (-1, 0), (5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_clients_with_another_leader_epoch_are_told(
    node: FakeNode, version: int, epoch: int, error: int
) -> None:
    node.have(a=1)
    answer = told(node.ask(KEY, version, request("a", (0, LATEST), epoch=epoch)))
    assert answer[0][1] == error


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_partition(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = refusal_of(KEY, version, request("a", (0, LATEST), (3, LATEST)), error)
    assert told(response) == [(0, error, -1, -1, -1), (3, error, -1, -1, -1)]
