# SPDX-License-Identifier: Apache-2.0
"""What the supervisor and its workers say to each other, over a `channel.Channel`.

Both ends are of the same build, so there are no versions.
"""

from collections.abc import Sequence

import msgspec

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.topic import Topic
from coordinator.config import Settings
from coordinator.node import EndsByTopic
from coordinator.topology.gateway_view import GatewayView, UpstreamState
from coordinator.topology.view import View
from protocol.names import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import Position


class _Message(msgspec.Struct, frozen=True, tag=True):
    """One message; the class's name says which."""


# --- from the supervisor


class WorkerStart(_Message, frozen=True):
    """The first: who the worker is and what it finds. `restarts` is how often its node has died before."""

    settings: Settings
    cluster_id: str
    topic_id: bytes
    offsets_topic: Topic
    view: View
    restarts: int


class LeadPartition(_Message, frozen=True):
    """Open this partition and serve it once the topics are here as they were when this was sent, or newer.

    It is on disk up to `recovery_point`, at `position`. A worker with older topics would take commits to those that
    were deleted, which counts as dropped here already.
    """

    partition: Partition
    leader_epoch: LeaderEpoch
    recovery_point: Offset
    position: Position | None
    topics_version: int


class TopicsDeleted(_Message, frozen=True):
    """These topics were deleted, and no leader of the partition has dropped their offsets: the next one is to do it."""

    partition: Partition
    topics: Sequence[str]


class OffsetsDroppedAck(_Message, frozen=True):
    """What the Dropped of this number has said is on disk."""

    number: int


class ResignPartition(_Message, frozen=True):
    """Serve this partition no more, close it, and say so."""

    partition: Partition
    leader_epoch: LeaderEpoch


class ViewUpdate(_Message, frozen=True):
    """Who is there and who leads what has changed."""

    view: View


class AllTopics(_Message, frozen=True, omit_defaults=True):
    """All topics as of `version`, from the message that is the first to the one that is the last."""

    version: int
    topics: Sequence[Topic] = ()
    is_first: bool = False
    is_last: bool = False


class TopicsChanged(_Message, frozen=True):
    """What makes the topics of `version` out of those of the version before. A worker with any other one asks anew."""

    version: int
    changes: Changes


class TopicChangeResult(_Message, frozen=True):
    """The answer to a ChangeTopics, which counts once the worker's topics are of `version`.

    `conflict` when the topics were not as the worker believed.
    """

    version: int
    conflict: bool
    error: str = ""


class EndOffsetsQuery(_Message, frozen=True):
    """What has this group of yours committed in these partitions, by topic?"""

    request: int
    group_id: GroupId
    partitions: dict[str, tuple[int, ...]]


class EndOffsetsAnswer(_Message, frozen=True):
    """What the group's node says, for the worker that asked; None if that is not known now."""

    request: int
    ends: EndsByTopic | None


class ClusterEnds(_Message, frozen=True):
    """The answer to an AskClusterEnds: by topic and partition the high watermark and the last stable offset.

    What the cluster does not say now is left out; None if it cannot be asked.
    """

    request: int
    ends: dict[str, dict[int, tuple[int, int]]] | None


class Stop(_Message, frozen=True):
    """Give back everything and end."""


class UpstreamStatus(_Message, frozen=True):
    """How the cluster is that a gateway stands before, and how many processes of the gateway let clients in."""

    state: UpstreamState
    gateways: int


# --- from the supervisor to a gateway


class GatewayStandBy(_Message, frozen=True):
    """Import what a gateway of these settings needs; GatewayStart follows once another process has died."""

    settings: Settings


class GatewayStart(_Message, frozen=True):
    """Serve: the settings, the number of the process, and what there is."""

    settings: Settings
    index: int
    view: GatewayView


class GatewayViewUpdate(_Message, frozen=True):
    """Our nodes, or the cluster's brokers, have changed."""

    view: GatewayView


class ForgetGroup(_Message, frozen=True):
    """A group is the cluster's again: it has to be taken over before anything is said of it."""

    group_id: str


class StopAccepting(_Message, frozen=True):
    """Let nobody connect any more; who is there may go on. Stop follows."""


# --- from a gateway


class GatewayListening(_Message, frozen=True):
    """The gateway listens on its ports."""


class UnknownBroker(_Message, frozen=True):
    """The cluster has named a broker to a client that is not in the view."""

    node_id: int


# --- from a worker


class WorkerListening(_Message, frozen=True):
    """The worker listens there; `metrics` is a URL."""

    listen: tuple[str, int]
    advertised: tuple[str, int]
    metrics: str | None


class CannotServe(_Message, frozen=True):
    """The worker ends, for this reason, which somebody has to see to."""

    reason: str


class PartitionLoaded(_Message, frozen=True):
    """A partition that the worker is to lead is served; or it cannot be, and why."""

    partition: Partition
    leader_epoch: LeaderEpoch
    failure: str | None = None


class OffsetsDropped(_Message, frozen=True):
    """These partitions hold no offsets in topics that went up to this version any more, and that is durable.

    So they do of topics that the worker heard of with the Lead of a partition. `number` is that of the message;
    DropsNoted answers it.
    """

    version: int
    partitions: Sequence[Partition]
    number: int


class PartitionReleased(_Message, frozen=True):
    """A partition is closed and on disk; `position` is its end, None if it was not opened yet or is empty."""

    partition: Partition
    leader_epoch: LeaderEpoch
    position: Position | None


class ChangeTopics(_Message, frozen=True):
    """Make these changes together with those sent before them, up to the message that is the last; or none of them."""

    changes: Changes
    is_last: bool


class AskTopics(_Message, frozen=True):
    """Send AllTopics: a change has been missed."""


class GroupGivenBack(_Message, frozen=True):
    """A group is the cluster's again."""

    group_id: str


class RefreshTopics(_Message, frozen=True):
    """A client names a topic that is not known here: the cluster may have it."""


class AskEndOffsets(_Message, frozen=True):
    """What has this group, of another node, committed in these partitions, by topic?"""

    request: int
    group_id: GroupId
    partitions: dict[str, tuple[int, ...]]


class AskClusterEnds(_Message, frozen=True):
    """Where do these partitions, by topic, end in the cluster that a gateway stands before?"""

    request: int
    partitions: dict[str, tuple[int, ...]]


class EndOffsetsReply(_Message, frozen=True):
    """The answer to an EndsWanted; None where the node does not serve the group."""

    request: int
    ends: EndsByTopic | None


FromSupervisor = (
    WorkerStart
    | LeadPartition
    | TopicsDeleted
    | OffsetsDroppedAck
    | ResignPartition
    | ViewUpdate
    | AllTopics
    | TopicsChanged
    | TopicChangeResult
    | EndOffsetsQuery
    | EndOffsetsAnswer
    | UpstreamStatus
    | ClusterEnds
    | Stop
)
FromWorker = (
    WorkerListening
    | CannotServe
    | PartitionLoaded
    | OffsetsDropped
    | PartitionReleased
    | ChangeTopics
    | AskTopics
    | RefreshTopics
    | GroupGivenBack
    | AskEndOffsets
    | AskClusterEnds
    | EndOffsetsReply
)
ToGateway = GatewayStandBy | GatewayStart | GatewayViewUpdate | ForgetGroup | StopAccepting | Stop
FromGateway = GatewayListening | CannotServe | UnknownBroker
