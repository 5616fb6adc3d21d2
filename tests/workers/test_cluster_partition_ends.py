# SPDX-License-Identifier: Apache-2.0
"""A worker asks where its partitions end, in questions of bounded size."""

from collections.abc import Iterator
from typing import Any

from coordinator.jobs.lag_watch import LagWatch
from coordinator.lag.lag_book import CommittedGroup, CommittedTopic, LagBook
from coordinator.runtime.clock import SystemClock
from coordinator.workers.messages import UpstreamEndOffsetsQuery, UpstreamEndOffsetsReply
from coordinator.workers.questions.cluster_end_requests import PARTITIONS_PER_QUESTION, ClusterEndRequests
from coordinator.workers.questions.cluster_partition_ends import ClusterPartitionEnds
from protocol.newtypes import GroupId
from tests.support.log_lines import LogLines

WIDE = 2 * PARTITIONS_PER_QUESTION + 1


def committed() -> Iterator[CommittedGroup]:
    """A group that reads a wide topic and some narrow ones."""
    yield CommittedGroup(
        GroupId("g"), 0, [CommittedTopic("wide", [(number, 1, 0) for number in range(WIDE)])]
    )
    narrow = [CommittedTopic(f"narrow-{number}", [(0, 1, 0)]) for number in range(10)]
    yield CommittedGroup(GroupId("h"), 0, narrow)


async def test_no_question_is_long_however_wide_a_topic_is() -> None:
    asked: list[UpstreamEndOffsetsQuery] = []

    def send(question: Any) -> None:
        asked.append(question)
        ends = {topic: dict.fromkeys(parts, (4, 3)) for topic, parts in question.partitions.items()}
        requests.receive(UpstreamEndOffsetsReply(question.request, ends))

    book = LagBook("group", 60_000)
    requests = ClusterEndRequests(send)
    found = ClusterPartitionEnds(committed, SystemClock(), book, requests, 120)
    watch = LagWatch(book, committed, SystemClock(), found.find_for_lag)
    await watch.measure_once()
    sizes = [sum(map(len, question.partitions.values())) for question in asked]
    assert sizes == [PARTITIONS_PER_QUESTION, PARTITIONS_PER_QUESTION, 11]
    assert {(row.group, row.lag, row.stable_lag) for row in book.newest.groups} == {
        ("g", 3 * WIDE, 2 * WIDE),
        ("h", 30, 20),
    }


async def test_a_supervisor_that_does_not_answer_is_not_waited_for_without_end(lines: LogLines) -> None:
    asked: list[Any] = []
    book = LagBook("group", 60_000)
    requests = ClusterEndRequests(asked.append)
    found = ClusterPartitionEnds(committed, SystemClock(), book, requests, 0)
    watch = LagWatch(book, committed, SystemClock(), found.find_for_lag)
    await watch.measure_once()
    assert len(asked) == 1, "without an answer to the first question there is no second one"
    assert lines.fields("the lag was not measured: the supervisor has not answered") == [{"seconds": 0}]
    requests.receive(UpstreamEndOffsetsReply(asked[0].request, {}))  # too late: does no harm
