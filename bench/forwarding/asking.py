# SPDX-License-Identifier: Apache-2.0
"""One record at a time, produced and fetched, over each way in turn: what a way adds to the time of an answer."""

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from bench.cluster import Peer
from bench.forwarding.frames import SMALL, TIMEOUT_S, fetch, produce
from bench.forwarding.ways import Way
from bench.wire import Call


class Asked(NamedTuple):
    """Medians in milliseconds."""

    way: str
    produce_ms: float
    fetch_ms: float


def ask(ways: Sequence[Way], requests: int) -> list[Asked]:
    """Ask so often over each way. Raises OSError and BadReply."""
    produced: dict[str, list[float]] = {way.name: [] for way in ways}
    fetched: dict[str, list[float]] = {way.name: [] for way in ways}
    to_produce, to_fetch = produce(SMALL, 1), fetch(SMALL, 1)
    with ExitStack() as stack:
        peers = [(way.name, stack.enter_context(Peer(way.address, TIMEOUT_S))) for way in ways]
        for _ in range(requests):
            for name, peer in peers:
                produced[name].append(_timed(peer, to_produce))
                fetched[name].append(_timed(peer, to_fetch))
    return [
        Asked(way.name, *(statistics.median(times[way.name]) for times in (produced, fetched)))
        for way in ways
    ]


def _timed(peer: Peer, call: Call) -> float:
    began = time.perf_counter()
    peer.ask(call)
    return (time.perf_counter() - began) * 1000
