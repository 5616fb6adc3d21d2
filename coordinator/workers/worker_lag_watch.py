# SPDX-License-Identifier: Apache-2.0
"""Measures the lag of a worker's groups; the supervisor asks the cluster where the partitions end."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from itertools import islice
from typing import Final

from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.upstream.lag import OFFSETS_PER_STEP, Committed, Ends, LagBook, PartitionEnd, empty_in_steps
from coordinator.workers import messages

log = get_logger("lag")

PARTITIONS_PER_QUESTION: Final = 2_000
"""The most partitions in one request: its response is decoded in one go, which takes some milliseconds."""


class ConsumerLagWatch:
    """Asks for the ends of partitions in pieces, one after the other, and measures the lag once all have arrived."""

    def __init__(
        self,
        book: LagBook,
        committed: Callable[[], Iterator[Committed]],
        clock: Clock,
        send: Callable[[messages.FromWorker], None],
        answer_within_s: float,
    ) -> None:
        """Measure all groups of `committed` into `book`; `send` sends a message to the supervisor.

        A measurement is given up if the supervisor does not answer within `answer_within_s` seconds.
        """
        self._book = book
        self._committed = committed
        self._clock = clock
        self._send = send
        self._answer_within_s = answer_within_s
        self._request = 0
        self._waiting: asyncio.Future[Ends | None] | None = None

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

    def receive_cluster_ends(self, answer: messages.UpstreamEndOffsetsReply) -> None:
        """Take the response of the cluster, which the supervisor sends on."""
        if self._waiting is not None and answer.request == self._request and not self._waiting.done():
            self._waiting.set_result(None if answer.ends is None else _typed(answer.ends))

    async def _ask(self, piece: dict[str, tuple[int, ...]]) -> Ends | None:
        self._request += 1
        self._waiting = asyncio.get_running_loop().create_future()
        self._send(messages.UpstreamEndOffsetsQuery(self._request, piece))
        try:
            async with asyncio.timeout(self._answer_within_s):
                return await self._waiting
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


def _typed(ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> Ends:
    return {topic: {part: PartitionEnd(*end) for part, end in each.items()} for topic, each in ends.items()}


def split_into_questions(
    wanted: MutableMapping[str, Collection[int]],
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield the wanted partitions by topic, PARTITIONS_PER_QUESTION at once; `wanted` is empty afterwards."""
    piece: dict[str, tuple[int, ...]] = {}
    size = 0
    while wanted:
        topic, partitions = wanted.popitem()
        left = iter(partitions)
        while part := tuple(islice(left, PARTITIONS_PER_QUESTION - size)):
            piece[topic] = part
            size += len(part)
            if size == PARTITIONS_PER_QUESTION:
                yield piece
                piece, size = {}, 0
    if piece:
        yield piece
