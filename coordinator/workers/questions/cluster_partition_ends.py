# SPDX-License-Identifier: Apache-2.0
"""The ends of partitions in the cluster behind a gateway, for a worker's groups; the supervisor asks the cluster."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, MutableMapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from coordinator.lag.lag_book import OFFSETS_PER_STEP, CommittedGroup, Ends, FoundEnds, LagBook
from coordinator.node import Partitions
from coordinator.partitions.group_access import GroupEntry
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.workers.questions.cluster_end_requests import ClusterEndRequests, split_into_questions

if TYPE_CHECKING:
    from coordinator.overview.local_group_details import KnownEnds
    from coordinator.overview.local_groups import LagOf

log = get_logger("lag")


ENDS_WITHIN_S: Final = 1.0
"""The seconds for the ends that one page of offsets shows; those that have not come by then are unknown."""


class ClusterPartitionEnds:
    """The ends of partitions at the cluster (`PartitionEnds`), asked for in pieces, one after the other."""

    def __init__(
        self,
        groups: Callable[[], Iterator[CommittedGroup]],
        clock: Clock,
        book: LagBook,
        requests: ClusterEndRequests,
        answer_within_s: float,
    ) -> None:
        """Ask for the partitions of `groups`, and wait at most `answer_within_s` seconds for each answer."""
        self._groups = groups
        self._clock = clock
        self._book = book
        self._requests = requests
        self._answer_within_s = answer_within_s

    async def find(self, partitions: Partitions) -> "KnownEnds":
        """Return the known ends of some partitions, which the cluster is asked for within ENDS_WITHIN_S."""
        try:
            ends = await self._requests.fetch(partitions, ENDS_WITHIN_S) or {}
        except TimeoutError:
            return {}
        return {topic: {part: end.high for part, end in known.items()} for topic, known in ends.items()}

    async def find_lags(self, partitions: Partitions | None) -> "LagOf":
        """Return the function for the lag of groups, as of the last measurement."""

        async def last_lag(kept: GroupEntry, _slices: Slices) -> int | None:
            return self._book.by_group.get(kept.group_id)

        return last_lag

    async def find_for_lag(self) -> FoundEnds | None:
        """Return the ends of the partitions of all groups; None if the supervisor does not answer, or knows none."""
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
