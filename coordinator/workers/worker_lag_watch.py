# SPDX-License-Identifier: Apache-2.0
"""Measures the lag of a worker's groups; the supervisor asks the cluster where the partitions end."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, MutableMapping

from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.lag import OFFSETS_PER_STEP, Committed, Ends, LagBook, PartitionEnd, empty_in_steps
from coordinator.workers.cluster_end_requests import ClusterEndRequests, split_into_questions

log = get_logger("lag")


class ConsumerLagWatch:
    """Asks for the ends of partitions in pieces, one after the other, and measures the lag once all have arrived."""

    def __init__(
        self,
        book: LagBook,
        committed: Callable[[], Iterator[Committed]],
        clock: Clock,
        requests: ClusterEndRequests,
        answer_within_s: float,
    ) -> None:
        """Measure all groups of `committed` into `book`.

        A measurement is given up if the supervisor does not answer within `answer_within_s` seconds.
        """
        self._book = book
        self._committed = committed
        self._clock = clock
        self._requests = requests
        self._answer_within_s = answer_within_s

    async def measure_once(self) -> None:
        """Measure the lag once; the last measurement stays if the cluster cannot be asked."""
        ends: dict[str, dict[int, PartitionEnd]] = {}
        for piece in split_into_questions(await self._wanted()):
            answer = await self._ask(piece)
            if answer is None:
                return
            for topic, partitions in answer.items():
                ends.setdefault(topic, {}).update(partitions)
        slices = Slices(self._clock.nanos)
        for _ in self._book.measure_in_steps(self._committed(), ends, self._clock.wall_ms()):
            if slices.is_over:
                await slices.yield_to_event_loop()
        for _ in empty_in_steps(ends):
            if slices.is_over:
                await slices.yield_to_event_loop()

    async def _ask(self, piece: dict[str, tuple[int, ...]]) -> Ends | None:
        try:
            return await self._requests.fetch(piece, self._answer_within_s)
        except TimeoutError:
            log.warning(
                "the lag was not measured: the supervisor has not answered", seconds=self._answer_within_s
            )
            return None

    async def _wanted(self) -> MutableMapping[str, Collection[int]]:
        """Return all partitions in which a group of this worker has committed offsets."""
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        slices = Slices(self._clock.nanos)
        for _, offsets in self._committed():
            for number, (topic, partition, _) in enumerate(offsets):
                wanted[topic].add(partition)
                if number % OFFSETS_PER_STEP == 0 and slices.is_over:
                    await slices.yield_to_event_loop()
        return dict(wanted)
