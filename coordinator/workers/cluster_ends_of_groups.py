# SPDX-License-Identifier: Apache-2.0
"""Asks where the partitions end in which a worker's groups have committed offsets; the supervisor asks the cluster."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, MutableMapping
from itertools import chain

from coordinator.lag.lag_book import OFFSETS_PER_STEP, CommittedGroup, Ends, FoundEnds
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.workers.cluster_end_requests import ClusterEndRequests, split_into_questions

log = get_logger("lag")


class ClusterEndsOfGroups:
    """Asks for the ends of partitions in pieces, one after the other."""

    def __init__(
        self,
        groups: Callable[[], Iterator[CommittedGroup]],
        clock: Clock,
        requests: ClusterEndRequests,
        answer_within_s: float,
    ) -> None:
        """Ask for the partitions of `groups`, and wait at most `answer_within_s` seconds for each answer."""
        self._groups = groups
        self._clock = clock
        self._requests = requests
        self._answer_within_s = answer_within_s

    async def find(self) -> FoundEnds | None:
        """Return the known ends by topic and partition; None if the supervisor does not answer, or knows none."""
        ends: FoundEnds = {}
        for piece in split_into_questions(await self._wanted()):
            answer = await self._ask(piece)
            if answer is None:
                return None
            for topic, partitions in answer.items():
                ends.setdefault(topic, {}).update(partitions)
        return ends

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
        for topic in chain.from_iterable(group.topics for group in self._groups()):
            partitions = wanted[topic.topic]
            for number, (partition, _, _) in enumerate(topic.offsets):
                partitions.add(partition)
                if number % OFFSETS_PER_STEP == 0 and slices.is_over:
                    await slices.yield_to_event_loop()
        return dict(wanted)
