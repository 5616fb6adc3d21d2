# SPDX-License-Identifier: Apache-2.0
"""The partitions and committed offsets that requests to a cluster name."""

from collections.abc import Mapping
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic that groups read."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TransferredOffset(NamedTuple):
    """A committed offset with its metadata and its leader epoch, which is -1 if it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = Mapping[TopicPartition, TransferredOffset]
Errors = dict[TopicPartition, int]
"""Kafka's error code by partition, without those that have none."""
