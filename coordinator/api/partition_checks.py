# SPDX-License-Identifier: Apache-2.0
"""The checks of a topic's partitions that ListOffsets and Fetch have in common."""

from typing import Final

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from coordinator.topology.view import ClusterTopology
from protocol.errors import ErrorCode
from protocol.newtypes import LeaderEpoch

READ_COMMITTED: Final = 1
"""The isolation level of a client that reads no records of open and aborted transactions."""
NO_EPOCH: Final = LeaderEpoch(-1)
"""The epoch in requests of a client that does not know it, or does not want it checked."""


def find_existence_or_epoch_error(
    cluster: ClusterTopology, topic: Topic | None, index: int, client_epoch: int
) -> ErrorCode:
    """Return why a partition is refused, or NONE; `client_epoch` is the leader epoch in the request (KIP-320).

    A partition is not refused because another node leads it: all nodes answer alike for partitions without data. For
    partitions with data, `can_answer_for` decides.
    """
    if topic is None or not topic.has_partition(index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if client_epoch == NO_EPOCH:
        return ErrorCode.NONE
    epoch = cluster.leader(topic, index).epoch
    if client_epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.UNKNOWN_LEADER_EPOCH if client_epoch > epoch else ErrorCode.FENCED_LEADER_EPOCH


def can_answer_for(node: Node, topic: Topic, index: int) -> bool:
    """Return whether this node can answer for a partition: only the leader can for the topic that has records."""
    return topic.name != OFFSETS_TOPIC or node.cluster.leader(topic, index).node_id == node.node_id
