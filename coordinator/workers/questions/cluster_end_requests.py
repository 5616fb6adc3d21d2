# SPDX-License-Identifier: Apache-2.0
"""A worker's requests for the ends of partitions in the cluster, which the supervisor puts to the brokers."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from itertools import islice
from typing import Final

from coordinator.lag.lag_book import Ends, PartitionEnd
from coordinator.workers import messages

PARTITIONS_PER_QUESTION: Final = 2_000
"""The most partitions in one request: its response is decoded in one go, which takes some milliseconds."""


class ClusterEndRequests:
    """The requests that wait for a response."""

    def __init__(self, send: Callable[[messages.FromWorker], None]) -> None:
        """`send` sends a message to the supervisor."""
        self._send = send
        self._waiting: dict[int, asyncio.Future[Ends | None]] = {}
        self._next = 0

    async def fetch(self, partitions: Mapping[str, Collection[int]], within_s: float) -> Ends | None:
        """Return the known ends of at most PARTITIONS_PER_QUESTION partitions, None if the cluster cannot be asked.

        Raises TimeoutError if the supervisor does not answer within `within_s` seconds.
        """
        self._next += 1
        request = self._next
        self._waiting[request] = asyncio.get_running_loop().create_future()
        wanted = {topic: tuple(numbers) for topic, numbers in partitions.items()}
        self._send(messages.UpstreamEndOffsetsQuery(request, wanted))
        try:
            async with asyncio.timeout(within_s):
                return await self._waiting[request]
        finally:
            del self._waiting[request]

    def receive(self, answer: messages.UpstreamEndOffsetsReply) -> None:
        """Take a response of the cluster, which the supervisor sends on."""
        waiting = self._waiting.get(answer.request)
        if waiting is not None and not waiting.done():
            waiting.set_result(None if answer.ends is None else _typed(answer.ends))


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
