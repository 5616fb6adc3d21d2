# SPDX-License-Identifier: Apache-2.0
"""Fetch of `__consumer_offsets`, at every version: its log, and who waits at the end of it."""

import uuid
from typing import Any

import pytest

from coordinator.api.fetch import WAIT_MS_MAX
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.partitions.fetch_waiters import LOOK_MS
from coordinator.topology.view import Broker, ClusterTopology, Leader, View
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchRequest
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.format.batch import iter_batches
from storage.partition.reader import FetchQuery
from tests.api.asking import ENDPOINT, Answers, FakeNode, versions
from tests.storage.cleaning import History, MarkerKind
from tests.storage.foreign import NOW

KEY = ApiKey.FETCH
EVERY_VERSION = pytest.mark.parametrize("version", versions(KEY))
MUCH = 1 << 20


def row(index: int, offset: int = 0, max_bytes: int = MUCH, **more: Any) -> Any:
    fields = {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1, **more}
    return FetchRequest.FetchTopic.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **fields
    )


def request(
    node: FakeNode, *rows: Any, wait_ms: int = 500, min_bytes: int = 1, others: Any = (), **fields: Any
) -> FetchRequest:
    topic = node.catalogue.get(OFFSETS_TOPIC)
    assert topic is not None
    wanted = FetchRequest.FetchTopic(topic=OFFSETS_TOPIC, topic_id=topic.uuid, partitions=list(rows))
    return FetchRequest(
        **{
            "replica_id": -1,
            "session_epoch": -1,
            "rack_id": "",
            "max_bytes": MUCH,
            "isolation_level": 0,
            **fields,
        },
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[wanted, *others],
        forgotten_topics_data=[],
    )


def start(node: FakeNode, version: int, asked: FetchRequest) -> Answers:
    """Ask, and let the io thread do what is to be done at once."""
    answers = Answers(KEY, version)
    node.start(answers, asked)
    node.thread.run_all()
    return answers


def look(node: FakeNode) -> None:
    """Let the time pass after which the ends of the logs are looked at again."""
    calls = node.timers.calls
    number = next(n for n, (delay_ms, _) in enumerate(calls) if delay_ms == LOOK_MS)
    calls.pop(number)[1].call()
    node.thread.run_all()


def time_is_up(node: FakeNode, wait_ms: int = 500) -> None:
    calls = node.timers.calls
    number = next(n for n, (delay_ms, _) in enumerate(calls) if delay_ms == wait_ms)
    calls.pop(number)[1].call()
    node.thread.run_all()


def commit(node: FakeNode, partition: int, count: int = 1) -> bytes:
    """Append so many batches; returns them."""
    history = History(node.log, partition)
    begin = node.log.end_offset(Partition(partition))
    for number in range(count):
        history.value(f"k{number}", "v" * 50)
    node.log.write_behind()
    data, _ = node.log.read(Partition(partition), begin, MUCH)
    return data


def partitions(answers: Answers) -> list[Any]:
    return [each for topic in answers.only.responses for each in topic.partitions]


@EVERY_VERSION
def test_batches_come_at_once_as_they_are_on_disk(node: FakeNode, version: int) -> None:
    data = commit(node, 3, 5)
    answers = start(node, version, request(node, row(3), row(4)))
    (topic,) = answers.only.responses
    if version < 13:
        assert topic.topic == OFFSETS_TOPIC
    else:
        assert topic.topic_id == node.catalogue.offsets_topic.uuid
    three, four = topic.partitions
    assert (three.partition_index, bytes(three.records)) == (3, data)
    assert (three.high_watermark, three.last_stable_offset, three.error_code) == (5, 5, 0)
    assert three.log_start_offset == (0 if version >= 5 else -1)
    assert (four.partition_index, bytes(four.records), four.high_watermark) == (4, b"", 0)
    assert three.aborted_transactions is three.diverging_epoch is three.current_leader is None
    assert answers.only.session_id == 0
    assert node.budget.total_bytes == 0


@EVERY_VERSION
def test_who_has_read_all_waits_and_wakes_on_an_append(node: FakeNode, version: int) -> None:
    commit(node, 3)
    answers = start(node, version, request(node, row(3, 1), row(4)))
    look(node)
    assert answers.bodies == []
    History(node.log, 3).value("more", "v")  # which is in the journal only
    look(node)
    three, four = partitions(answers)
    assert [batch.base_offset for batch in iter_batches(bytes(three.records), check=True)] == [1]
    assert (three.high_watermark, bytes(four.records)) == (2, b"")
    assert [delay_ms for delay_ms, timer in node.timers.calls if timer.callback and delay_ms != LOOK_MS] == []


@EVERY_VERSION
def test_who_waits_for_nothing_is_answered_when_the_time_is_up(node: FakeNode, version: int) -> None:
    commit(node, 3)
    answers = start(node, version, request(node, row(3, 1)))
    assert answers.bodies == []
    time_is_up(node)
    (three,) = partitions(answers)
    assert (three.error_code, bytes(three.records), three.high_watermark) == (0, b"", 1)


def test_nobody_waits_longer_than_the_longest_poll(node: FakeNode) -> None:
    start(node, 12, request(node, row(0), wait_ms=2**31 - 1))
    assert WAIT_MS_MAX in [delay_ms for delay_ms, _ in node.timers.calls]


@pytest.mark.parametrize("fields", [{"wait_ms": 0}, {"wait_ms": -1}, {"min_bytes": 0}, {"min_bytes": -1}])
def test_who_does_not_wait_sees_all_that_is_durable(node: FakeNode, fields: dict[str, int]) -> None:
    History(node.log, 3).value("k", "v")  # in the journal only
    (three,) = partitions(start(node, 12, request(node, row(3), **fields)))
    assert (three.high_watermark, bool(three.records)) == (1, True)
    assert node.timers.calls == []


def test_a_fetch_waits_until_there_are_as_many_bytes_as_it_wants(node: FakeNode) -> None:
    size = len(commit(node, 3))
    answers = start(node, 12, request(node, row(3), row(4), min_bytes=3 * size))
    commit(node, 3)
    look(node)
    assert answers.bodies == []
    assert node.budget.total_bytes == 0  # what it has seen is not kept meanwhile
    commit(node, 4)
    look(node)
    assert [len(each.records) for each in partitions(answers)] == [2 * size, size]


def test_what_is_wanted_at_least_is_no_more_than_what_is_wanted_at_most(node: FakeNode) -> None:
    size = len(commit(node, 3))
    answers = start(node, 12, request(node, row(3), min_bytes=1 << 30, max_bytes=size))
    assert [len(each.records) for each in partitions(answers)] == [size]


@pytest.mark.parametrize(
    ("max_bytes", "partition_max_bytes", "batches"),
    [
        (0, MUCH, (1, 0)),  # the first batch always comes
        (MUCH, 0, (1, 0)),
        (3, MUCH, (3, 0)),
        (4, MUCH, (3, 1)),
        (MUCH, 2, (2, 2)),
        (3, 2, (2, 1)),
    ],
)
def test_no_more_comes_than_fits(
    node: FakeNode, max_bytes: int, partition_max_bytes: int, batches: tuple[int, int]
) -> None:
    """The bounds are in batches here, which are all of one size, unless they are MUCH."""
    size = len(commit(node, 3, 3)) // 3
    commit(node, 4, 3)
    of_partition = partition_max_bytes if partition_max_bytes == MUCH else partition_max_bytes * size
    asked = request(
        node,
        row(3, max_bytes=of_partition),
        row(4, max_bytes=of_partition),
        max_bytes=max_bytes if max_bytes == MUCH else max_bytes * size,
        wait_ms=0,
    )
    answers = start(node, 12, asked)
    assert tuple(len(each.records) // size for each in partitions(answers)) == batches


@pytest.mark.parametrize("sizes", [(-1, MUCH), (MUCH, -1)])
def test_less_than_nothing_is_refused_as_by_kafka_where_there_is_something(
    node: FakeNode, sizes: tuple[int, int]
) -> None:
    commit(node, 3)
    max_bytes, of_partition = sizes
    rows = [row(3, max_bytes=of_partition), row(4, max_bytes=of_partition)]
    three, four = partitions(start(node, 12, request(node, *rows, max_bytes=max_bytes, wait_ms=0)))
    assert (three.error_code, four.error_code) == (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)


def test_the_node_has_a_bound_of_its_own(tmp_path: Any) -> None:
    node = FakeNode(tmp_path, fetch_max_bytes=1_024)
    commit(node, 3, 40)
    answers = start(node, 12, request(node, row(3), row(4)))
    assert 0 < len(partitions(answers)[0].records) <= 1_024


@EVERY_VERSION
@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"offset": 2}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": -1}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"index": 50}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_an_error_is_told_at_once_beside_what_there_is(
    node: FakeNode, version: int, wanted: dict[str, int], error: ErrorCode
) -> None:
    data = commit(node, 3)
    commit(node, 7)
    refused, read = partitions(start(node, version, request(node, row(**{"index": 7, **wanted}), row(3))))
    assert refused.error_code == error
    assert (refused.high_watermark, refused.last_stable_offset, bytes(refused.records)) == (-1, -1, b"")
    assert bytes(read.records) == data


@pytest.mark.parametrize("version", [v for v in versions(KEY) if v >= 9])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.NONE), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_the_leader_epoch_that_the_client_knows_must_be_the_one_of_now(
    node: FakeNode, version: int, epoch: int, error: ErrorCode
) -> None:
    commit(node, 3)
    lead(node, {3: (7, 5)})
    answers = start(node, version, request(node, row(3, current_leader_epoch=epoch)))
    (three,) = partitions(answers)
    assert three.error_code == error
    named = error is ErrorCode.FENCED_LEADER_EPOCH and version >= 16
    assert (three.current_leader is not None) == named
    assert [each.node_id for each in answers.only.node_endpoints or ()] == ([7] if named else [])


def lead(node: FakeNode, leaders: dict[int, tuple[int, int]]) -> None:
    """Two nodes, 7 (this one) and 8; who leads what under which epoch, the others being this node's."""
    brokers = (Broker(7, *ENDPOINT), Broker(8, "other.example", 9093))
    epochs = (leaders.get(index, (7, 0)) for index in range(50))
    view = [Leader(node_id, LeaderEpoch(epoch)) for node_id, epoch in epochs]
    node.cluster = ClusterTopology(View(brokers, tuple(view)))


@EVERY_VERSION
def test_who_asks_another_than_the_leader_is_sent_there(node: FakeNode, version: int) -> None:
    lead(node, {3: (8, 2)})
    answers = start(node, version, request(node, row(3), row(4)))
    three, four = partitions(answers)
    assert (three.error_code, four.error_code) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    if version >= 16:
        assert (three.current_leader.leader_id, three.current_leader.leader_epoch) == (8, 2)
        (endpoint,) = answers.only.node_endpoints
        assert (endpoint.node_id, endpoint.host, endpoint.port) == (8, "other.example", 9093)
    else:
        assert three.current_leader is None


def test_who_waits_hears_it_when_the_leader_changes(node: FakeNode) -> None:
    answers = start(node, 12, request(node, row(3)))
    lead(node, {3: (8, 2)})
    commit(node, 3)
    look(node)
    (three,) = partitions(answers)
    assert three.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_log_that_cannot_be_read_is_told_so_that_clients_ask_again(node: FakeNode) -> None:
    node.log.close()
    (three,) = partitions(start(node, 12, request(node, row(3))))
    assert three.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_logs_that_diverge_are_told_at_once(node: FakeNode) -> None:
    commit(node, 3, 2)
    lead(node, {3: (7, 5)})
    (three,) = partitions(start(node, 12, request(node, row(3, 2, last_fetched_epoch=3))))
    assert (three.diverging_epoch.epoch, three.diverging_epoch.end_offset) == (0, 2)
    assert (three.error_code, bytes(three.records)) == (0, b"")


@EVERY_VERSION
def test_who_reads_committed_data_hears_of_aborted_transactions(node: FakeNode, version: int) -> None:
    history = History(node.log, 3)
    history.transaction(9, {"a": "1"})
    history.end(9, MarkerKind.ABORT)
    history.transaction(10, {"b": "1"})
    (three,) = partitions(start(node, version, request(node, row(3), isolation_level=1, wait_ms=0)))
    assert [(each.producer_id, each.first_offset) for each in three.aborted_transactions] == [(9, 0)]
    assert (three.high_watermark, three.last_stable_offset) == (3, 2)
    assert [batch.base_offset for batch in iter_batches(bytes(three.records))] == [0, 1]


@EVERY_VERSION
def test_topics_without_data_are_answered_beside_it(node: FakeNode, version: int) -> None:
    topic = node.have(a=1)["a"]
    data = commit(node, 3)
    other = FetchRequest.FetchTopic(topic="a", topic_id=topic.uuid, partitions=[row(0, 12)])
    answers = start(node, version, request(node, row(3), others=[other]))
    three, of_a = partitions(answers)
    assert (bytes(three.records), bytes(of_a.records), of_a.high_watermark) == (data, b"", 12)


def test_an_error_of_another_topic_ends_the_wait_too(node: FakeNode) -> None:
    other = FetchRequest.FetchTopic(topic="nope", topic_id=uuid.UUID(int=9), partitions=[row(0)])
    answers = start(node, 12, request(node, row(3), others=[other]))
    assert [each.error_code for each in partitions(answers)] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_that_is_named_twice_is_answered_once_as_it_was_named_last(node: FakeNode) -> None:
    commit(node, 3, 2)
    answers = start(node, 12, request(node, row(3, 9), row(4), row(3, 1)))
    assert [(each.partition_index, each.error_code) for each in partitions(answers)] == [(3, 0), (4, 0)]


def test_a_client_that_goes_away_leaves_nothing_behind(node: FakeNode) -> None:
    commit(node, 3)
    answers = Answers(KEY, 12)
    reading = node.start(answers, request(node, row(3)))
    reading.stop_abandoned_work()
    node.thread.run_all()
    waiting = node.start(answers, request(node, row(3, 1)))
    node.thread.run_all()
    waiting.stop_abandoned_work()
    commit(node, 3)
    look(node)
    assert (answers.bodies, node.thread.waiting, node.budget.total_bytes) == ([], [], 0)
    assert [timer for delay_ms, timer in node.timers.calls if timer.callback is not None] == []


def test_reads_end_with_what_they_have_when_the_memory_for_answers_is_used_up(tmp_path: Any) -> None:
    node = FakeNode(tmp_path)
    for partition in range(20):
        commit(node, partition)
    node.budget.bytes_max = 1 << 20
    node.budget.add_unsent_bytes((1 << 20) - 10)
    answers = start(node, 12, request(node, *map(row, range(20)), max_bytes=1 << 30, wait_ms=0))
    read = [bool(each.records) for each in partitions(answers)]
    assert read == [True] * 10 + [False] * 10  # a slice of ten partitions, and of the others their ends
    assert [each.high_watermark for each in partitions(answers)] == [1] * 20
    assert node.budget.total_bytes == (1 << 20) - 10


def test_a_slice_reads_no_more_than_was_kept_for_it_in_the_budget(node: FakeNode) -> None:
    for partition in (0, 1):
        History(node.log, partition).value("k", "v" * 900_000)
    node.log.write_behind()
    wanted = [
        FetchQuery(partition=Partition(partition), offset=Offset(0), max_bytes=MUCH) for partition in (0, 1)
    ]
    done: list[bool] = []
    reading = node.reads.prepare_fetch(wanted, 1 << 30, lambda: done.append(True), with_newest=True)
    reading.go_on()
    kept_bytes = node.budget.total_bytes
    node.thread.run_all()
    assert done
    assert MUCH < reading.held_bytes <= kept_bytes
    reading.stop_and_release_bytes()
    assert node.budget.total_bytes == 0


def test_who_waits_is_not_read_for_while_the_memory_for_answers_is_used_up(node: FakeNode) -> None:
    answers = start(node, 12, request(node, row(3)))
    commit(node, 3)
    node.budget.bytes_max = 100
    node.budget.add_unsent_bytes(101)
    look(node)
    look(node)
    assert (answers.bodies, node.thread.waiting) == ([], [])
    node.budget.remove_unsent_bytes(101)
    look(node)
    assert len(partitions(answers)[0].records) > 0


def test_time_in_the_log_is_what_its_batches_say(node: FakeNode) -> None:
    commit(node, 3)
    (three,) = partitions(start(node, 12, request(node, row(3))))
    (batch,) = iter_batches(bytes(three.records), check=True)
    assert batch.max_timestamp == NOW
