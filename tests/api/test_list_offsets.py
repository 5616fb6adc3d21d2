# SPDX-License-Identifier: Apache-2.0
"""ListOffsets, at every version; where ends are known, the answers are those of a Kafka 4.4 whose logs end there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from coordinator.node import CommittedEndOffset, EndsByTopic, Partitions
from coordinator.tickets import DURABLE, DurabilityTicket
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListOffsetsRequest
from protocol.newtypes import Offset, Partition
from tests.api.asking import Answers, FakeNode, error_response_of, versions

KEY = ApiKey.LIST_OFFSETS
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
LATEST, EARLIEST = -1, -2
UNKNOWN = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


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
def test_a_partition_starts_at_zero(node: FakeNode, version: int) -> None:
    node.have(a=3)
    epoch = 0 if version >= 4 else -1
    assert told(node.ask(KEY, version, request("a", (2, EARLIEST)))) == [(2, 0, -1, 0, epoch)]


@EVERY_VERSION
@pytest.mark.parametrize("of_node", [False, True])
def test_a_partition_ends_where_its_end_group_has_committed(
    tmp_path: Path, version: int, *, of_node: bool
) -> None:
    node = FakeNode(tmp_path, end_group="makers" if of_node else None)
    if of_node:
        node.have(a=3)
    else:
        node.have_ending("makers", a=3)
    node.groups.commit("makers", "a", {0: 41, 1: 0})
    node.groups.commit("ahead", "a", {0: 1_000, 1: 1_000, 2: 1_000})
    epoch = 0 if version >= 4 else -1
    for asked_epoch in (-1, epoch):
        answer = told(node.ask(KEY, version, request("a", (0, LATEST), (1, LATEST), epoch=asked_epoch)))
        assert answer == [(0, 0, -1, 41, epoch), (1, 0, -1, 0, epoch)]


def test_a_topic_may_name_no_group_although_the_node_does(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, end_group="makers")
    node.have_ending("", a=1)
    node.groups.commit("makers", "a", {0: 41})
    assert told(node.ask(KEY, 11, request("a", (0, LATEST)))) == [(0, 0, -1, -1, -1)]


@EVERY_VERSION
@pytest.mark.parametrize("end_group", [None, "makers"])
@pytest.mark.parametrize(
    ("told_to_tools", "end", "by_time"),
    [("-1", (0, -1), (0, -1)), ("0", (0, 0), (0, -1)), ("error", (UNKNOWN, -1), (UNKNOWN, -1))],
)
def test_where_the_end_is_unknown_consumers_start_at_zero_and_a_setting_decides_for_tools(
    tmp_path: Path,
    version: int,
    end_group: str | None,
    told_to_tools: Literal["-1", "0", "error"],
    end: tuple[int, int],
    by_time: tuple[int, int],
) -> None:
    node = FakeNode(tmp_path, end_unknown=told_to_tools)
    if end_group is None:
        node.have(a=2)
    else:
        node.have_ending(end_group, a=2)
    node.groups.commit("other", "a", {0: 5})
    node.groups.commit("makers", "elsewhere", {0: 5})
    consumer = told(node.ask(KEY, version, request("a", (0, LATEST), (1, 1_700), epoch=0)))
    assert consumer == [(0, 0, -1, 0, 0 if version >= 4 else -1), (1, 0, -1, -1, -1)]
    if version >= 4:
        tool = told(node.ask(KEY, version, request("a", (0, LATEST), (1, 1_700))))
        assert [(error, offset) for _, error, _, offset, _ in tool] == [end, by_time]


@EVERY_VERSION
@pytest.mark.parametrize(("timestamp", "error"), [(0, UNKNOWN), (1_700, UNKNOWN), (1_701, 0), (2**63 - 1, 0)])
def test_nothing_was_made_after_the_end_was_committed_and_what_was_before_is_unknown(
    node: FakeNode, version: int, timestamp: int, error: int
) -> None:
    node.have_ending("makers", a=1)
    node.groups.commit("makers", "a", {0: 41}, at_ms=1_700)
    for epoch in (-1, 0):
        answer = told(node.ask(KEY, version, request("a", (0, timestamp), epoch=epoch)))
        assert answer == [(0, error, -1, -1, -1)]


def test_the_end_is_told_only_once_the_commit_that_it_shows_is_durable(node: FakeNode) -> None:
    node.have_ending("makers", a=1)
    absent, committed = DurabilityTicket(Partition(0), 13), DurabilityTicket(Partition(0), 17)
    node.groups.commit("other", "a", {0: 9}, ticket=DurabilityTicket(Partition(0), 99))
    node.groups.shard("makers").absence_ticket = absent
    assert node.start(Answers(KEY, 11), request("a", (0, LATEST))).ticket is absent
    node.groups.commit("makers", "a", {0: 5}, ticket=committed)
    assert node.start(Answers(KEY, 11), request("a", (0, LATEST))).ticket is committed
    assert node.start(Answers(KEY, 11), request("a", (0, 0))).ticket is committed
    assert node.start(Answers(KEY, 11), request("a", (0, EARLIEST))).ticket is DURABLE


@EVERY_VERSION
def test_the_end_is_not_told_while_its_group_is_still_coming_from_the_log(
    node: FakeNode, version: int
) -> None:
    node.have_ending("makers", a=1)
    node.groups.put_elsewhere("makers", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    not_yet = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert told(node.ask(KEY, version, request("a", (0, LATEST)))) == [(0, not_yet, -1, -1, -1)]
    assert told(node.ask(KEY, version, request("a", (0, EARLIEST))))[0][:4] == (0, 0, -1, 0)
    node.have_ending("others", b=1)
    assert told(node.ask(KEY, version, request("b", (0, LATEST), epoch=0)))[0][:2] == (0, 0)


class Neighbour:
    """Another node, which answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.done: list[Callable[[EndsByTopic | None], None]] = []

    def request_committed_offsets(
        self, group_id: str, partitions: Partitions, done: Callable[[EndsByTopic | None], None]
    ) -> None:
        self.asked.append((group_id, {topic: set(indexes) for topic, indexes in partitions.items()}))
        self.done.append(done)


def test_the_end_is_asked_of_the_node_that_leads_the_group(node: FakeNode) -> None:
    node.have_ending("far", a=1, b=2)
    node.have_ending("farther", c=1)
    node.have_ending("here", d=1)
    node.groups.commit("here", "d", {0: 4})
    for group in ("far", "farther"):
        node.groups.put_elsewhere(group, ErrorCode.NOT_COORDINATOR)
    node.ends = neighbour = Neighbour()
    answers = Answers(KEY, 11)
    wanted = request("a", (0, LATEST))
    for name, index in (("b", 0), ("b", 1), ("c", 0), ("d", 0)):
        wanted.topics += request(name, (index, LATEST)).topics
    node.start(answers, wanted)
    assert neighbour.asked == [("far", {"a": {0}, "b": {0, 1}}), ("farther", {"c": {0}})]
    assert answers.bodies == []
    neighbour.done[1](None)
    neighbour.done[0](
        {"a": {0: CommittedEndOffset(Offset(7), 1)}, "b": {1: CommittedEndOffset(Offset(8), 1)}}
    )
    assert [(t.name, [(p.error_code, p.offset) for p in t.partitions]) for t in answers.only.topics] == [
        ("a", [(0, 7)]),
        ("b", [(0, -1), (0, 8)]),
        ("c", [(ErrorCode.OFFSET_NOT_AVAILABLE, -1)]),
        ("d", [(0, 4)]),
    ]


@pytest.mark.slow  # not on the compiled build, which looks into a dict past the counting one
def test_a_topic_that_is_named_again_and_again_is_looked_at_once(node: FakeNode) -> None:
    node.have_ending("makers", a=2)
    node.groups.commit("makers", "a", {0: 41, 1: 42})
    for number in range(20_000):
        node.groups.commit(f"group {number}", "a", {0: 1})
    wanted = request("a", (0, LATEST), (1, LATEST))
    wanted.topics *= 250
    answer = told(node.ask(KEY, 11, wanted))
    assert answer == [(index, ErrorCode.INVALID_REQUEST, -1, -1, -1) for index in (0, 1)]
    assert node.groups.looked_at("makers") == 1


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
    wanted = [(0, EARLIEST), (1, LATEST), (-1, LATEST)]
    answer = told(node.ask(KEY, version, request("a", *wanted)))
    assert [each[:2] for each in answer] == [(0, 0), (1, unknown), (-1, unknown)]
    assert answer[1] == (1, unknown, -1, -1, -1)
    answer = told(node.ask(KEY, version, request("nope", *wanted)))
    assert [each[1] for each in answer] == [unknown] * 3


@EVERY_VERSION
def test_a_partition_that_is_asked_for_twice_is_refused_once(node: FakeNode, version: int) -> None:
    node.have(a=2)
    answer = told(node.ask(KEY, version, request("a", (0, LATEST), (1, EARLIEST), (0, EARLIEST))))
    assert [each[:2] for each in answer] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 4])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, 0), (-1, 0), (5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_clients_with_another_leader_epoch_are_told(
    node: FakeNode, version: int, epoch: int, error: int
) -> None:
    node.have_ending("makers", a=1)
    node.groups.commit("makers", "a", {0: 41})
    answer = told(node.ask(KEY, version, request("a", (0, LATEST), epoch=epoch)))
    assert answer[0][1] == error


@EVERY_VERSION
def test_a_refused_request_has_the_error_for_every_partition(version: int) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    response = error_response_of(KEY, version, request("a", (0, LATEST), (3, LATEST)), error)
    assert told(response) == [(0, error, -1, -1, -1), (3, error, -1, -1, -1)]
