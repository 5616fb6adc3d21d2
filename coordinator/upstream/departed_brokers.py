# SPDX-License-Identifier: Apache-2.0
"""Brokers that the cluster's metadata no longer lists: dead ones leave it within seconds, as do those taken out."""

from collections.abc import Callable, Mapping
from typing import Final

from coordinator.upstream.cluster import UpstreamBroker

MISSED_S: Final = 1_800.0
"""How long a dead broker counts as missed, in seconds; one that was taken out for good looks the same."""
REASON: Final = "it has gone from the cluster's metadata: it is dead, or was taken out"


class DepartedBrokers:
    """Remembers each broker for MISSED_S after it has gone, so that operators can see a dead broker."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """`now_s` is a monotonic clock, in seconds."""
        self._now_s = now_s
        self._there: Mapping[int, UpstreamBroker] = {}
        self._gone: dict[int, tuple[UpstreamBroker, float]] = {}  # with the time until which it is missed

    def set_listed_brokers(self, now: Mapping[int, UpstreamBroker]) -> None:
        """Set the brokers that the metadata lists now, by id."""
        until_s = self._now_s() + MISSED_S
        self._gone.update((node_id, (broker, until_s)) for node_id, broker in self._there.items())
        self._gone = {node_id: gone for node_id, gone in self._gone.items() if node_id not in now}
        self._there = dict(now)

    def list_departed(self) -> list[UpstreamBroker]:
        """Return the brokers that are missed now, ordered by id."""
        now_s = self._now_s()
        self._gone = {node_id: gone for node_id, gone in self._gone.items() if gone[1] > now_s}
        return [broker for _, (broker, _) in sorted(self._gone.items())]
