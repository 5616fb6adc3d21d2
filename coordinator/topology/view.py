# SPDX-License-Identifier: Apache-2.0
"""Who is there and who leads what, as every node answers its clients."""

from collections.abc import Sequence
from typing import Final

import msgspec

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from protocol.names import GroupId, LeaderEpoch
from protocol.placement import partition_for

NOBODY: Final = -1
TOPIC_EPOCH: Final = LeaderEpoch(0)
"""The leader epoch of every partition of a topic without data: no log of theirs could be cut."""


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A node as clients reach it."""

    node_id: int
    host: str
    port: int


class Leader(msgspec.Struct, frozen=True, array_like=True):
    """The leader of a partition, or NOBODY, and its epoch."""

    node_id: int
    epoch: LeaderEpoch


class View(msgspec.Struct, frozen=True):
    """What the supervisor sends to all nodes: those that serve, by id, and the leaders of `__consumer_offsets`."""

    brokers: tuple[Broker, ...]
    leaders: tuple[Leader, ...]


class Cluster:
    """The newest view. A node that is alone is the leader of everything."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_id: dict[int, Broker] = {}
        self._topic_leaders: list[Leader] = []
        self.update(view)

    @classmethod
    def alone(cls, broker: Broker) -> "Cluster":
        """The cluster of a single node."""
        return cls(View((broker,), ()))

    def update(self, view: View) -> None:
        """Take over what the supervisor says."""
        self._view = view
        self._by_id = {broker.node_id: broker for broker in view.brokers}
        self._topic_leaders = [Leader(node_id, TOPIC_EPOCH) for node_id in self._by_id or (NOBODY,)]

    @property
    def brokers(self) -> Sequence[Broker]:
        """All nodes that serve, by id."""
        return self._view.brokers

    @property
    def controller_id(self) -> int:
        """The node that changes of topics are best sent to: each can do it, but all should name the same one."""
        return self._view.brokers[0].node_id if self._view.brokers else NOBODY

    def coordinator(self, group_id: GroupId) -> Broker | None:
        """The node that leads the group's partition; None while none does."""
        leaders = self._view.leaders
        if not leaders:
            return self._view.brokers[0]
        return self._by_id.get(leaders[partition_for(group_id, len(leaders))].node_id)

    def leader(self, topic: Topic, index: int) -> Leader:
        """The leader of a topic's partition.

        Topics have no data, so any node can lead: their partitions are spread.
        """
        if topic.name == OFFSETS_TOPIC and self._view.leaders:
            leader = self._view.leaders[index]
            return leader if leader.node_id in self._by_id else Leader(NOBODY, leader.epoch)
        return self._topic_leaders[(index + topic.id[0]) % len(self._topic_leaders)]
