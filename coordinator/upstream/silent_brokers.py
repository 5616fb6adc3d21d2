# SPDX-License-Identifier: Apache-2.0
"""Brokers that have gone from the cluster's metadata: dead ones go from there within seconds, as do those taken out."""

from collections.abc import Callable, Mapping
from typing import Final

from coordinator.upstream.cluster import UpstreamBroker

MISSED_S: Final = 1_800.0
"""How long a broker is missed. One that was taken out of the cluster for good is so, too: nothing tells them apart."""
REASON: Final = "it has gone from the cluster's metadata: it is dead, or was taken out"


class MissedBrokers:
    """Remembers them for a while, so that a dead broker can be seen."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """`now_s` is a monotonic clock, in seconds."""
        self._now_s = now_s
        self._there: Mapping[int, UpstreamBroker] = {}
        self._gone: dict[int, tuple[UpstreamBroker, float]] = {}  # with the time until which it is missed

    def change(self, now: Mapping[int, UpstreamBroker]) -> None:
        """These brokers are in the metadata now, by id."""
        until_s = self._now_s() + MISSED_S
        self._gone.update((node_id, (broker, until_s)) for node_id, broker in self._there.items())
        self._gone = {node_id: gone for node_id, gone in self._gone.items() if node_id not in now}
        self._there = dict(now)

    def brokers(self) -> list[UpstreamBroker]:
        """Those that are missed now, by id."""
        now_s = self._now_s()
        self._gone = {node_id: gone for node_id, gone in self._gone.items() if gone[1] > now_s}
        return [broker for _, (broker, _) in sorted(self._gone.items())]
