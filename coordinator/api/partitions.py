# SPDX-License-Identifier: Apache-2.0
"""What Metadata, ListOffsets and Fetch have to agree on about a topic's partitions."""

from typing import Final

from coordinator.catalogue.topic import Topic
from protocol.errors import ErrorCode

LEADER_EPOCH: Final = 0
"""Of every partition: this node has always been its leader."""

NO_EPOCH: Final = -1
"""What a client says that does not know the epoch, or does not want it checked."""


def partition_error(topic: Topic | None, index: int, client_epoch: int) -> ErrorCode:
    """Why a client cannot be told about a partition; `client_epoch` is the leader epoch it believes in (KIP-320)."""
    if topic is None or not topic.has_partition(index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if client_epoch in (NO_EPOCH, LEADER_EPOCH):
        return ErrorCode.NONE
    return ErrorCode.UNKNOWN_LEADER_EPOCH if client_epoch > LEADER_EPOCH else ErrorCode.FENCED_LEADER_EPOCH
