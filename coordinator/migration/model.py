# SPDX-License-Identifier: Apache-2.0
"""The terms of groups that move between a Kafka cluster and this node, for nodes, gateways and commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from coordinator.cluster_requests.model import ClusterGroupState, Offsets, TopicPartition
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

STALE: Final = ErrorCode.FENCED_LEADER_EPOCH
"""The error of a reading of the cluster that may be too old by now."""
CHANGED: Final = ErrorCode.OFFSET_OUT_OF_RANGE
"""The error of giving a group back whose offsets differ from those that the cluster has taken."""


class Location(Enum):
    """The place where requests for a group are served."""

    HERE = "here"
    MIGRATING = "being taken over or given back"
    AT_CLUSTER = "at the cluster, if anywhere"
    NOWHERE = "neither here nor at the cluster a moment ago"


class Mark(IntEnum):
    """The state of a group, as the ledger stores it."""

    ADOPTED = 0
    """The group's offsets here count, and nothing is taken from the cluster any more."""
    UNDER_WAY = 1
    """The group is being taken over or given back: its offsets at the cluster count, those here are to be deleted."""
    BEGUN = 2
    """As ADOPTED, for a group that began here: the cluster did not have it. Such a mark need not be kept for ever."""


class Ownership(NamedTuple):
    """The response of a group's coordinator here, asked for the group's state or to take the group over.

    An adoption is reported only once it is durable.
    """

    error: ErrorCode = ErrorCode.NONE
    """STALE if the reading of the cluster may be too old by now; then nothing has changed."""
    is_adopted: bool = False
    is_confirmed_absent: bool = False
    """True if the group existed neither here nor at the cluster a moment ago; it may be read, and begin."""
    epoch: int = 0
    """The number of times that marks of the partition were taken away."""
    asked_ms: int = 0
    """The time of the response, in milliseconds of the coordinator's clock, which does not go back."""
    taken: int = -1
    """The number of the cluster's offsets that this request has taken over; -1 if it did not take the group over."""


class ClusterReading(NamedTuple):
    """The offsets of one group as read from the cluster."""

    offsets: Offsets
    epoch: int
    """`Ownership.epoch` before the reading."""
    asked_ms: int
    """`Ownership.asked_ms` before the reading."""
    is_unknown: bool = False
    """True if the cluster does not have the group, which has no offsets then."""


class AdoptStatus(Enum):
    """The outcome of an attempt to adopt a group."""

    ADOPTED = "adopted"
    ALREADY = "already here"
    CONFIRMED_ABSENT = "unknown"
    LIVE = "live at the cluster"
    SHARE = "share group at the cluster"
    BUSY = "busy"

    @property
    def may_be_served(self) -> bool:
        """True if the group may be served here, a confirmed absent one for a moment."""
        return self not in (AdoptStatus.LIVE, AdoptStatus.SHARE, AdoptStatus.BUSY)


class GiveBackStatus(Enum):
    """The outcome of an attempt to give a group back."""

    GIVEN = "given back"
    NOTHING = "nothing here"
    LIVE_HERE = "live here"
    LIVE_THERE = "live at the cluster"
    SHARE_THERE = "share group at the cluster"
    REFUSED = "refused by the cluster"
    BUSY = "goes on committing"


@dataclass(frozen=True, slots=True)
class AdoptResult:
    """The result for one group, done or predicted: `offsets` are those of the cluster."""

    group: GroupId
    outcome: AdoptStatus
    offsets: Offsets = field(default_factory=dict)
    state: ClusterGroupState | None = None
    """The group's state at the cluster; None if the cluster was not asked."""


@dataclass(frozen=True, slots=True)
class GiveBackResult:
    """The result for one group, done or predicted: `offsets` are those from here, `refused` Kafka's error codes."""

    group: GroupId
    outcome: GiveBackStatus
    offsets: Offsets = field(default_factory=dict)
    refused: Mapping[TopicPartition, int] = field(default_factory=dict)
    rest: Sequence[TopicPartition] = ()
    """The other partitions in which the cluster has an offset of the group, which counts again."""
    written: Sequence[TopicPartition] = ()
    """The partitions whose offsets the cluster has taken although the group stays."""
    state: ClusterGroupState | None = None
    """The group's state at the cluster, if that is why the group cannot go."""
