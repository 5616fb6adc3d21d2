# SPDX-License-Identifier: Apache-2.0
"""Fetch of `__consumer_offsets`: batches of its log, as they are on disk.

A fetch that finds less than `min_bytes` waits until the log end offset has moved, and then reads again. It is answered
at once if there is an error, if the logs of client and leader diverge, or if the log has more data than the size limits
allow. The first read covers only batches that are in the segments. Later reads, and the only read for a client that
does not wait, cover all durable data (`client_log_reads`).
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from coordinator.api.context import PARKED, ParkedSentinel, RequestContext, Work
from coordinator.api.fetch_partition_results import (
    LED_ELSEWHERE,
    WHERE_IT_IS_NOW_FROM,
    FetchableTopicResponse,
    PartitionData,
    make_error_result,
    make_log_result,
)
from coordinator.api.partition_checks import READ_COMMITTED
from coordinator.api.slices import cast_as_list, encode_and_count_errors_in_steps
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from coordinator.partitions.client_log_reads import LogReadInProgress
from coordinator.partitions.fetch_waiters import FetchWaiter
from coordinator.runtime.timers import Timer
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchRequest, FetchResponse
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.partition.reader import NO_EPOCH, FetchQuery, ReadResult

FetchPartition = FetchRequest.FetchTopic.FetchPartition


class LogFetch:
    """One fetch that names partitions of the log, kept until it is answered."""

    def __init__(
        self,
        node: Node,
        request: FetchRequest,
        ctx: RequestContext,
        topic: Topic,
        rows: Mapping[Partition, FetchPartition],
        *,
        refuse: Callable[[FetchPartition], ErrorCode],
        topics: Callable[[Iterator[PartitionData | None]], Iterator[FetchableTopicResponse]],
    ) -> None:
        """Create a fetch for `rows` by partition; `refuse` returns why a partition is not read, or NONE.

        `topics` takes the results for the partitions of `topic`, and returns the results for all topics of the request.
        """
        self._node = node
        self._ctx = ctx
        self._topic = topic
        self._rows = rows
        self._refuse = refuse
        self._topics = topics
        self._committed = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._answers: dict[Partition, ReadResult | ErrorCode] = {}
        self._asked: list[Partition] = []
        self._reading: LogReadInProgress | None = None
        self._waiting: FetchWaiter | None = None
        self._timer: Timer | None = None

    def start(self, wait_ms: int) -> ParkedSentinel:
        """Start the fetch; answer once it has found enough, and at the latest after `wait_ms`."""
        self._node.stats.log_fetches += 1
        self._ctx.on_abandoned = self._stop
        if wait_ms > 0:
            self._timer = self._node.timers.call_after(wait_ms, self._time_is_up)
        self._try(with_newest=wait_ms <= 0)
        return PARKED

    # --- reading ---

    def _try(self, *, with_newest: bool) -> None:
        self._answers = {}
        wanted = []
        for index, row in self._rows.items():
            error = self._refuse(row)
            if error is ErrorCode.NONE:
                wanted.append(self._wanted(row))
            else:
                self._answers[index] = error
        self._asked = [each.partition for each in wanted]
        self._reading = self._node.reads.prepare_fetch(
            wanted, self._max_bytes, self._was_read, with_newest=with_newest
        )
        self._reading.go_on()

    def _wanted(self, row: FetchPartition) -> FetchQuery:
        return FetchQuery(
            partition=Partition(row.partition),
            offset=Offset(row.fetch_offset),
            max_bytes=row.partition_max_bytes,
            committed=self._committed,
            last_epoch=LeaderEpoch(max(row.last_fetched_epoch, NO_EPOCH)),
            leader_epoch=self._node.cluster.leader(self._topic, row.partition).epoch,
        )

    def _was_read(self) -> None:
        reading = self._reading
        assert reading is not None, "nothing was to be read"
        self._answers.update(zip(self._asked, reading.found, strict=True))
        if self._timer is None or reading.is_cut or self._is_enough(reading):
            self._answer()
            return
        reading.stop_and_release_bytes()
        self._reading = None
        self._answers = {index: _without_records(each) for index, each in self._answers.items()}
        self._wait()

    def _is_enough(self, reading: LogReadInProgress) -> bool:
        if reading.held_bytes >= self._min_bytes:
            return True
        return any(
            not isinstance(each, ReadResult) or each.is_cut or each.diverging is not None
            for each in self._answers.values()
        )

    # --- waiting ---

    def _wait(self) -> None:
        ends = {
            index: each.end_offset for index, each in self._answers.items() if isinstance(each, ReadResult)
        }
        self._waiting = self._node.reads.tail.add_waiter(ends, self._wake)

    def _wake(self) -> None:
        self._waiting = None
        if self._node.reads.budget.over:
            self._wait()  # until other clients have read their responses
        else:
            self._try(with_newest=True)

    def _time_is_up(self, _argument: object) -> None:
        self._timer = None
        if self._reading is not None:
            return  # the answer will hold the batches that are being read
        self._stop()
        if self._node.reads.budget.over:
            self._answer()
        else:
            self._try(with_newest=True)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting is not None:
            self._node.reads.tail.remove_waiter(self._waiting)
            self._waiting = None
        if self._reading is not None:
            self._reading.stop_and_release_bytes()

    # --- answering ---

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reading is not None:
            self._node.stats.log_fetched_bytes += self._reading.held_bytes
            self._ctx.is_counted = True
        self._ctx.answer_by_sliced_work(self._encode())

    def _encode(self) -> Work:
        try:
            response = FetchResponse(
                version=self._ctx.api_version,
                responses=cast_as_list(self._topics(self._partitions())),
                node_endpoints=self._endpoints(),
            )
            return (yield from encode_and_count_errors_in_steps(self._node, self._ctx, response))
        finally:
            self._stop()  # from now on the bytes count as those of the response

    def _partitions(self) -> Iterator[PartitionData | None]:
        version = self._ctx.api_version
        for index in self._rows:
            answer = self._answers[index]
            if isinstance(answer, ReadResult):
                yield make_log_result(index, answer, version, committed=self._committed)
                yield None  # about a megabyte was encoded
            else:
                is_there = self._topic.has_partition(index)
                leader = self._node.cluster.leader(self._topic, index) if is_there else None
                yield make_error_result(index, answer, version, leader)

    def _endpoints(self) -> list[FetchResponse.NodeEndpoint]:
        """Return the addresses of the leaders that the response names."""
        version, cluster = self._ctx.api_version, self._node.cluster
        if version < WHERE_IT_IS_NOW_FROM:
            return []
        elsewhere = [
            index
            for index, answer in self._answers.items()
            if isinstance(answer, ErrorCode) and answer in LED_ELSEWHERE
        ]
        leaders = {cluster.leader(self._topic, index).node_id for index in elsewhere}
        return [
            FetchResponse.NodeEndpoint(version=version, node_id=each.node_id, host=each.host, port=each.port)
            for each in cluster.brokers
            if each.node_id in leaders
        ]


def _without_records(answer: ReadResult | ErrorCode) -> ReadResult | ErrorCode:
    if isinstance(answer, ReadResult):
        return msgspec.structs.replace(answer, records=b"", aborted=())
    return answer
