# SPDX-License-Identifier: Apache-2.0
"""What Metadata, ListOffsets and Fetch have to agree on about a topic's partitions."""

from typing import Final

from coordinator.catalogue.topic import Topic
from coordinator.topology.view import Cluster
from protocol.errors import ErrorCode

NO_EPOCH: Final = -1
"""What a client says that does not know the epoch, or does not want it checked."""


def partition_error(cluster: Cluster, topic: Topic | None, index: int, client_epoch: int) -> ErrorCode:
    """Why a client cannot be told about a partition; `client_epoch` is the leader epoch it believes in (KIP-320).

    Not because another node leads it: no node has data of it, so each tells the same.
    """
    if topic is None or not topic.has_partition(index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if client_epoch == NO_EPOCH:
        return ErrorCode.NONE
    epoch = cluster.leader(topic, index).epoch
    if client_epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.UNKNOWN_LEADER_EPOCH if client_epoch > epoch else ErrorCode.FENCED_LEADER_EPOCH
