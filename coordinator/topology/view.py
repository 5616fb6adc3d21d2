# SPDX-License-Identifier: Apache-2.0
"""The nodes and the leaders of partitions, as every node reports them to clients."""

from collections.abc import Sequence
from typing import Final

import msgspec

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from protocol.newtypes import GroupId, LeaderEpoch, Partition
from protocol.placement import partition_for

NO_NODE: Final = -1
TOPIC_EPOCH: Final = LeaderEpoch(0)
"""The leader epoch of every partition of a topic without data: it has no log that could be truncated."""


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A node with its address for clients."""

    node_id: int
    host: str
    port: int


class Leader(msgspec.Struct, frozen=True, array_like=True):
    """The leader of a partition, -1 if it has none, and its epoch."""

    node_id: int
    epoch: LeaderEpoch


class View(msgspec.Struct, frozen=True):
    """The view that the supervisor sends to all nodes: serving nodes ordered by id, leaders of `__consumer_offsets`."""

    brokers: tuple[Broker, ...]
    leaders: tuple[Leader, ...]


class ClusterTopology:
    """The newest view of the cluster; a single node is the leader of everything."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_id: dict[int, Broker] = {}
        self._topic_leaders: list[Leader] = []
        self.update(view)

    def update(self, view: View) -> None:
        """Replace the view by a newer one from the supervisor."""
        self._view = view
        self._by_id = {broker.node_id: broker for broker in view.brokers}
        self._topic_leaders = [Leader(node_id, TOPIC_EPOCH) for node_id in self._by_id or (NO_NODE,)]

    def replace_leader(self, partition: Partition, leader: Leader) -> None:
        """Replace the leader of a partition of `__consumer_offsets`."""
        leaders = list(self._view.leaders)
        leaders[partition] = leader
        self.update(View(self._view.brokers, tuple(leaders)))

    @property
    def brokers(self) -> Sequence[Broker]:
        """All nodes that serve, in the order of their ids."""
        return self._view.brokers

    @property
    def controller_id(self) -> int:
        """The node for changes of topics: every node can make them, but all nodes should name the same one."""
        return self._view.brokers[0].node_id if self._view.brokers else NO_NODE

    def look_up_coordinator(self, group_id: GroupId) -> Broker | None:
        """Return the node that leads the group's partition; None while none does."""
        leaders = self._view.leaders
        if not leaders:
            return self._view.brokers[0]
        return self._by_id.get(leaders[partition_for(group_id, len(leaders))].node_id)

    def leader(self, topic: Topic, index: int) -> Leader:
        """Return the leader of a topic's partition.

        Topics have no data, so any node can lead: their partitions are spread over the nodes.
        """
        if topic.name == OFFSETS_TOPIC and self._view.leaders:
            leader = self._view.leaders[index]
            return leader if leader.node_id in self._by_id else Leader(NO_NODE, leader.epoch)
        return self._topic_leaders[(index + topic.id[0]) % len(self._topic_leaders)]
