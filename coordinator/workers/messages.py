# SPDX-License-Identifier: Apache-2.0
"""The messages between the supervisor and its workers and gateways, over a `channel.Channel`.

Both ends are of the same build, so the messages have no versions.
"""

from collections.abc import Sequence

import msgspec

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.topic import Topic
from coordinator.config import Settings
from coordinator.overview.group_list import UnservedPart
from coordinator.topology.gateway_view import GatewayView, UpstreamState
from coordinator.topology.view import View
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition


class _Message(msgspec.Struct, frozen=True, tag=True):
    """A message, tagged with the name of its class."""


# --- from the supervisor


class WorkerStart(_Message, frozen=True):
    """The first message: a worker's settings and its surroundings. `restarts` counts the earlier deaths of its node."""

    settings: Settings
    cluster_id: str
    topic_id: bytes
    offsets_topic: Topic
    view: View
    restarts: int


class LeadPartition(_Message, frozen=True):
    """Orders a worker to open a partition, and to serve it once its topics are of `topics_version` or newer.

    The partition is on disk up to `recovery_point`, at `position`. A worker with older topics would take commits to
    topics that were deleted, whose offsets count as dropped from this partition already.
    """

    partition: Partition
    leader_epoch: LeaderEpoch
    recovery_point: Offset
    position: SegmentPosition | None
    topics_version: int


class PendingOffsetDrops(_Message, frozen=True):
    """Names deleted topics whose offsets no leader of the partition has dropped: the next leader is to drop them."""

    partition: Partition
    topics: Sequence[str]


class OffsetDropReportStored(_Message, frozen=True):
    """Reports that the content of the OffsetsDropped with this number is on disk."""

    number: int


class ResignPartition(_Message, frozen=True):
    """Orders a worker to stop serving a partition, close it, and report that."""

    partition: Partition
    leader_epoch: LeaderEpoch


class ViewUpdate(_Message, frozen=True):
    """The new view, after a change of the nodes or of the leaders."""

    view: View


class AllTopicsPiece(_Message, frozen=True, omit_defaults=True):
    """A piece of all topics as of `version`; `is_first` and `is_last` mark the ends of the list."""

    version: int
    topics: Sequence[Topic] = ()
    is_first: bool = False
    is_last: bool = False


class TopicsChanged(_Message, frozen=True):
    """The changes from the version before to `version`; a worker with any other version asks for all topics."""

    version: int
    changes: Changes


class TopicChangeReply(_Message, frozen=True):
    """The response to a ChangeTopics, which counts once the worker's topics are of `version`.

    `conflict` is True if the topics were not as the worker believed.
    """

    version: int
    conflict: bool
    error: str = ""


class UpstreamEndOffsetsReply(_Message, frozen=True):
    """The response to UpstreamEndOffsetsQuery: high watermark and last stable offset by topic and partition.

    Partitions that the cluster does not report now are left out; `ends` is None if the cluster cannot be asked.
    """

    request: int
    ends: dict[str, dict[int, tuple[int, int]]] | None


class Stop(_Message, frozen=True):
    """Orders a process to release everything and end."""


class UpstreamStatus(_Message, frozen=True):
    """The state of the cluster behind a gateway, and the number of gateway processes that accept clients."""

    state: UpstreamState
    gateways: int


class NodeQuestion(_Message, frozen=True):
    """Puts a question, of a process that serves HTTP, to a node; NodeAnswer answers it."""

    number: int
    question: bytes


class NodeAnswerPassedOn(_Message, frozen=True):
    """One node's answer to an AskNodes."""

    request: int
    answer: bytes


class NodesHaveAnswered(_Message, frozen=True):
    """Ends the answers to an AskNodes; `missing` names the nodes without an answer, and unled partitions."""

    request: int
    missing: Sequence[UnservedPart]


# --- from the supervisor to a gateway


class GatewayStandBy(_Message, frozen=True):
    """Orders a spare process to import what a gateway needs; GatewayStart follows once another process has died."""

    settings: Settings


class GatewayStart(_Message, frozen=True):
    """Orders a gateway to serve, with the settings, the number of the process, and the view."""

    settings: Settings
    index: int
    view: GatewayView


class UpdateGatewayView(_Message, frozen=True):
    """The new view, after a change of our nodes or of the cluster's brokers."""

    view: GatewayView


class ForgetGroup(_Message, frozen=True):
    """Reports that a group is the cluster's again: the gateway must adopt the group before it answers for it."""

    group_id: str


class GatewayStopAccepting(_Message, frozen=True):
    """Orders a gateway to accept no more connections, and to keep the open ones. Stop follows."""


# --- from a gateway


class GatewayListening(_Message, frozen=True):
    """Reports that the gateway listens on its ports."""


class UnknownBrokerSeen(_Message, frozen=True):
    """Reports that the cluster has named to a client a broker that is not in the view."""


# --- from a worker


class WorkerListening(_Message, frozen=True):
    """Reports the addresses at which the worker listens; `metrics` is a URL."""

    listen: tuple[str, int]
    advertised: tuple[str, int]
    metrics: str | None


class ProcessCannotServe(_Message, frozen=True):
    """Reports that the process ends, for a reason that an operator has to remove."""

    reason: str


class PartitionLoadResult(_Message, frozen=True):
    """Reports that the worker serves a partition that it is to lead, or why it cannot."""

    partition: Partition
    leader_epoch: LeaderEpoch
    failure: str | None = None


class OffsetsDropped(_Message, frozen=True):
    """Reports that these partitions, durably, hold no offsets in topics that were deleted up to this version.

    The same holds for the topics of PendingOffsetDrops that came before a partition's LeadPartition. `number` is the
    number of this message; OffsetDropReportStored answers it.
    """

    version: int
    partitions: Sequence[Partition]
    number: int


class PartitionReleased(_Message, frozen=True):
    """Reports a partition closed and on disk; `position` is its end, None if it was not opened yet or is empty."""

    partition: Partition
    leader_epoch: LeaderEpoch
    position: SegmentPosition | None


class ChangeTopics(_Message, frozen=True):
    """Asks to make the changes of this and earlier messages, up to the one with `is_last`: all of them or none."""

    changes: Changes
    is_last: bool


class AskTopics(_Message, frozen=True):
    """Asks for all topics (AllTopicsPiece) because the worker has missed a change."""


class GroupGivenBackToCluster(_Message, frozen=True):
    """Reports that a group is the cluster's again."""

    group_id: str


class AskTopicRefresh(_Message, frozen=True):
    """Asks for a refresh because a client names a topic that the worker lacks: the cluster may have it."""


class UpstreamEndOffsetsQuery(_Message, frozen=True):
    """Asks where these partitions, by topic, end in the cluster behind a gateway."""

    request: int
    partitions: dict[str, tuple[int, ...]]


class AskNodes(_Message, frozen=True):
    """Asks to put a question to all nodes, or to the one that leads a group; NodesHaveAnswered comes last.

    A gateway may ask, too.
    """

    request: int
    question: bytes
    group_id: GroupId | None = None


class NodeAnswer(_Message, frozen=True):
    """The answer to a NodeQuestion; None if the node has failed to find it, or does not serve the group."""

    number: int
    answer: bytes | None


FromSupervisor = (
    WorkerStart
    | LeadPartition
    | PendingOffsetDrops
    | OffsetDropReportStored
    | ResignPartition
    | ViewUpdate
    | AllTopicsPiece
    | TopicsChanged
    | TopicChangeReply
    | UpstreamStatus
    | UpstreamEndOffsetsReply
    | NodeQuestion
    | NodeAnswerPassedOn
    | NodesHaveAnswered
    | Stop
)
FromWorker = (
    WorkerListening
    | ProcessCannotServe
    | PartitionLoadResult
    | OffsetsDropped
    | PartitionReleased
    | ChangeTopics
    | AskTopics
    | AskTopicRefresh
    | GroupGivenBackToCluster
    | UpstreamEndOffsetsQuery
    | AskNodes
    | NodeAnswer
)
ToGateway = (
    GatewayStandBy
    | GatewayStart
    | UpdateGatewayView
    | ForgetGroup
    | GatewayStopAccepting
    | NodeAnswerPassedOn
    | NodesHaveAnswered
    | Stop
)
FromGateway = GatewayListening | ProcessCannotServe | UnknownBrokerSeen | AskNodes
