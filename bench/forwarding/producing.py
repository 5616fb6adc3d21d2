# SPDX-License-Identifier: Apache-2.0
"""Produce requests of one batch, over and over, several at a time on several connections."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from bench.cluster import Peer
from bench.forwarding import frames
from bench.forwarding.frames import RECORDS_IN_BATCH, TIMEOUT_S, new_topic
from bench.forwarding.streaming import CONNECTIONS, WARM_UP_S, Carried
from bench.forwarding.ways import Way
from bench.kafka import Kafka
from bench.wire import Call

IN_FLIGHT: Final = 5
"""The default of a producer's max.in.flight.requests.per.connection."""


def produce(broker: Kafka, way: Way, seconds: float) -> Carried:
    """Produce for so long to a topic that is new, and deleted afterwards. Raises OSError, BadReply, Unprepared."""
    with new_topic(broker.address, f"forwarded-batches-{way.name}") as topic, ExitStack() as stack:
        call = frames.produce(topic, RECORDS_IN_BATCH)
        peers = [stack.enter_context(Peer(way.address, TIMEOUT_S)) for _ in range(CONNECTIONS)]
        for peer in peers * IN_FLIGHT:
            peer.send(call)
        _produce_for(peers, call, WARM_UP_S)
        cpu_s, began = way.cpu_s(), time.perf_counter()
        size = _produce_for(peers, call, seconds)
        took, used_s = time.perf_counter() - began, way.cpu_s() - cpu_s
        for peer in peers * IN_FLIGHT:
            call.decode_good(peer.receive())
    return Carried(way.name, size / 1e6 / took, used_s / (size / 1e9))


def _produce_for(peers: Sequence[Peer], call: Call, seconds: float) -> int:
    """Send a request for each response that came; returns how many bytes were sent."""
    size, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for peer in peers:
            call.decode_good(peer.receive())
            peer.send(call)
            size += len(call.frame)
    return size
