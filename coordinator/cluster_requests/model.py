# SPDX-License-Identifier: Apache-2.0
"""The partitions, committed offsets and states of groups that requests to a cluster are about."""

from collections.abc import Mapping
from typing import Final, NamedTuple


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


class ClusterGroupState(NamedTuple):
    """The state of a group at the cluster.

    `kind` is `classic`, `consumer` (KIP-848), `streams` (KIP-1071), `share` (KIP-932), or empty if there is none.
    """

    kind: str
    state: str
    members: int

    @classmethod
    def none(cls) -> "ClusterGroupState":
        """Return the state of a group that does not exist."""
        return cls("", "Dead", 0)

    @property
    def is_present_in_cluster(self) -> bool:
        """True if the cluster has anything of the group, even if that is only offsets."""
        return bool(self.kind)

    @property
    def is_live(self) -> bool:
        """True if the group has members, or is about to: the cluster still coordinates it."""
        return self.members > 0 or self.state not in _WITHOUT_MEMBERS

    @property
    def is_share(self) -> bool:
        """True if the group is a share group, with members or without.

        It cannot become a classic group: a broker responds to a JoinGroup with INCONSISTENT_GROUP_PROTOCOL, and to a
        commit with GROUP_ID_NOT_FOUND. An empty consumer or streams group becomes a classic one, which keeps its
        committed offsets (GroupMetadataManager.classicGroupJoin), and takes commits without a generation.
        """
        return self.kind == "share"


_WITHOUT_MEMBERS: Final = ("Empty", "Dead", "")
