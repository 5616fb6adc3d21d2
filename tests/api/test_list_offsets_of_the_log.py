# SPDX-License-Identifier: Apache-2.0
"""ListOffsets of `__consumer_offsets`, at every version: places in its log."""

from typing import Any

import pytest

from coordinator.catalogue.names import OFFSETS_TOPIC
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListOffsetsRequest
from tests.api.asking import FakeNode, versions
from tests.api.test_fetch_log import commit, lead
from tests.storage.cleaning import NOW, History

KEY = ApiKey.LIST_OFFSETS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
START, END, NEWEST, LOCAL_START, TIERED_END = -2, -1, -3, -4, -5


def row(index: int, timestamp: int, epoch: int = -1) -> Any:
    return ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
        partition_index=index, current_leader_epoch=epoch, timestamp=timestamp
    )


def topic(name: str, *rows: Any) -> Any:
    return ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=list(rows))


def ask(node: FakeNode, version: int, *rows: Any, level: int = 0, others: Any = ()) -> list[Any]:
    """(error, timestamp, offset, leader epoch) of each partition."""
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=level, topics=[topic(OFFSETS_TOPIC, *rows), *others]
    )
    response = node.ask(KEY, version, request)
    return [
        (each.error_code, each.timestamp, each.offset, each.leader_epoch if version >= 4 else 5)
        for of_topic in response.topics
        for each in of_topic.partitions
    ]


@EVERY_VERSION
def test_the_places_of_a_log(node: FakeNode, version: int) -> None:
    lead(node, dict.fromkeys(range(50), (7, 5)))
    commit(node, 3, 2)
    History(node.log, 3).value("k", "in the journal only")
    of_batch = 0 if version >= 4 else 5
    assert ask(node, version, row(3, START)) == [(0, -1, 0, of_batch)]
    assert ask(node, version, row(3, END)) == [(0, -1, 3, 5)]
    assert ask(node, version, row(3, NOW)) == [(0, NOW, 0, of_batch)]
    assert ask(node, version, row(3, NOW + 1)) == [(0, -1, -1, -1 if version >= 4 else 5)]
    assert ask(node, version, row(4, START), row(4 + 1, END)) == [(0, -1, 0, 5)] * 2
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1 if version >= 4 else 5)
    newest = (0, NOW, 0, of_batch) if version >= 7 else unsupported
    assert ask(node, version, row(3, NEWEST)) == [newest]
    assert ask(node, version, row(3, LOCAL_START)) == [(0, -1, 0, of_batch) if version >= 8 else unsupported]
    assert ask(node, version, row(3, TIERED_END)) == [(0, -1, -1, -1) if version >= 9 else unsupported]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 2])
def test_who_reads_committed_data_is_told_where_it_stops(node: FakeNode, version: int) -> None:
    commit(node, 3)
    History(node.log, 3).transaction(9, {"a": "1"})
    assert [offset for _, _, offset, _ in ask(node, version, row(3, END), level=1)] == [1]
    assert [offset for _, _, offset, _ in ask(node, version, row(3, END), level=0)] == [2]


@EVERY_VERSION
def test_errors_are_told_by_partition(node: FakeNode, version: int) -> None:
    lead(node, {2: (8, 1)})
    rows = [row(50, END), row(2, END), row(3, END), row(4, END), row(4, START)]
    errors = [error for error, *_ in ask(node, version, *rows)]
    assert errors == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,  # named twice
    ]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 4])
@pytest.mark.parametrize(
    ("epoch", "error"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH), (5, 0)]
)
def test_the_epoch_that_the_client_knows_is_checked(
    node: FakeNode, version: int, epoch: int, error: int
) -> None:
    lead(node, {3: (7, 5)})
    assert [found[0] for found in ask(node, version, row(3, END, epoch))] == [error]


@EVERY_VERSION
def test_other_topics_are_answered_beside_it(node: FakeNode, version: int) -> None:
    node.have_ending("makers", a=1)
    node.groups.commit("makers", "a", {0: 40})
    commit(node, 3)
    found = ask(node, version, row(3, END), others=[topic("a", row(0, END)), topic("nope", row(0, END))])
    assert [(error, offset) for error, _, offset, _ in found] == [
        (0, 1),
        (0, 40),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
