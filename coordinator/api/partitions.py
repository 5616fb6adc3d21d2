# SPDX-License-Identifier: Apache-2.0
"""What Metadata, ListOffsets and Fetch have to agree on about a topic's partitions."""

from typing import Final

from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from coordinator.topology.view import Cluster
from protocol.errors import ErrorCode
from protocol.names import LeaderEpoch

READ_COMMITTED: Final = 1
"""The isolation level of a client that wants nothing of open and aborted transactions."""
NO_EPOCH: Final = LeaderEpoch(-1)
"""What a client says that does not know the epoch, or does not want it checked."""


def partition_error(cluster: Cluster, topic: Topic | None, index: int, client_epoch: int) -> ErrorCode:
    """Why a client gets no answer about a partition; `client_epoch` is the leader epoch it believes in (KIP-320).

    Not because another node leads it: where no node has data of it, each answers alike (else `is_led_here`).
    """
    if topic is None or not topic.has_partition(index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if client_epoch == NO_EPOCH:
        return ErrorCode.NONE
    epoch = cluster.leader(topic, index).epoch
    if client_epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.UNKNOWN_LEADER_EPOCH if client_epoch > epoch else ErrorCode.FENCED_LEADER_EPOCH


def is_led_here(node: Node, topic: Topic, index: int) -> bool:
    """Whether this node can answer for a partition: of the topic that has records only its leader."""
    return topic.name != OFFSETS_TOPIC or node.cluster.leader(topic, index).node_id == node.node_id
