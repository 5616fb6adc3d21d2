# SPDX-License-Identifier: Apache-2.0
"""The data that clusters return and that the `groups` commands show; the field names are those of their JSON."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from coordinator.cluster_requests.model import TopicPartition


class GroupListing(msgspec.Struct, frozen=True):
    """One group of `groups list`; `type` is empty if the server does not return it (before Kafka 3.8)."""

    group: str
    state: str
    type: str
    protocol_type: str


class AssignedTopic(msgspec.Struct, frozen=True, order=True):
    """The partitions of one topic that are assigned to a member."""

    topic: str
    partitions: list[int]


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """One member of a group; `assignment` is empty if it has none or if it cannot be decoded.

    Only members of groups of KIP-848 have `epoch`, `target` and `is_classic`, which is true for the classic protocol.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: list[AssignedTopic]
    epoch: int | None = None
    target: list[AssignedTopic] | None = None
    is_classic: bool | None = None

    @property
    def assigned_partitions(self) -> list[TopicPartition]:
        """The partitions that are assigned to the member."""
        return [TopicPartition(of.topic, partition) for of in self.assignment for partition in of.partitions]


class GroupDetails(msgspec.Struct, frozen=True):
    """A group as its coordinator describes it; only groups of KIP-848 have epochs."""

    group: str
    state: str
    type: str
    protocol_type: str
    protocol: str
    coordinator_id: int
    coordinator: str
    members: list[Member]
    epoch: int | None = None
    assignment_epoch: int | None = None


class CommittedOffset(msgspec.Struct, frozen=True, order=True):
    """The offset that a group has committed for one partition; leader epoch -1 means that it is not known."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""

    @property
    def place(self) -> TopicPartition:
        """The partition of the offset."""
        return TopicPartition(self.topic, self.partition)


class GroupView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The group in one line; `lag` is the sum of all known lags of its partitions, None if none is known."""

    state: str
    members: int
    type: str
    protocol_type: str
    protocol: str
    coordinator_id: int
    coordinator: str
    epoch: int | None = None
    assignment_epoch: int | None = None
    lag: int | None = None


class OffsetView(msgspec.Struct, frozen=True):
    """One partition of a group, committed or assigned; values that are missing or not known are None.

    `end` is the log end offset, `lag` how far the group is behind it, below 0 if the group is beyond it.
    """

    topic: str
    partition: int
    offset: int | None
    end: int | None
    lag: int | None
    leader_epoch: int | None
    metadata: str | None
    member_id: str | None
    client_id: str | None
    client_host: str | None


class GroupTopicSummary(msgspec.Struct, frozen=True):
    """A topic of a group, the number of its committed partitions, and the sum of their known lags."""

    topic: str
    committed: int
    lag: int | None


class GroupDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The requested parts of `groups describe`."""

    group: str
    state: GroupView | None = None
    members: list[Member] | None = None
    offsets: list[OffsetView] | None = None
    topics: list[GroupTopicSummary] | None = None


def make_group_view(details: GroupDetails, offsets: Sequence[OffsetView]) -> GroupView:
    """Return the group in one line, with the lag of these partitions."""
    return GroupView(
        details.state,
        len(details.members),
        details.type,
        details.protocol_type,
        details.protocol,
        details.coordinator_id,
        details.coordinator,
        details.epoch,
        details.assignment_epoch,
        _lag(offsets),
    )


def sum_lag_by_topic(offsets: Sequence[OffsetView]) -> list[GroupTopicSummary]:
    """Return the lag by topic, in the order of names."""
    by_topic: dict[str, list[OffsetView]] = {}
    for each in offsets:
        by_topic.setdefault(each.topic, []).append(each)
    return [
        GroupTopicSummary(topic, sum(each.offset is not None for each in rows), _lag(rows))
        for topic, rows in sorted(by_topic.items())
    ]


def _lag(offsets: Iterable[OffsetView]) -> int | None:
    # An offset beyond the end of its partition must not hide the lag of other partitions.
    lags = [max(0, each.lag) for each in offsets if each.lag is not None]
    return sum(lags) if lags else None


def list_group_partitions(
    details: GroupDetails, committed: Sequence[CommittedOffset]
) -> list[TopicPartition]:
    """Return every partition that has an offset or a reader, in order."""
    assigned = {place for member in details.members for place in member.assigned_partitions}
    return sorted(assigned | {offset.place for offset in committed})


def offset_views(
    details: GroupDetails, committed: Sequence[CommittedOffset], ends: Mapping[TopicPartition, int]
) -> list[OffsetView]:
    """Return every partition that has an offset or a reader, in order; `ends` has the known ends."""
    owners = {place: member for member in details.members for place in member.assigned_partitions}
    offsets = {offset.place: offset for offset in committed}
    views = []
    for place in list_group_partitions(details, committed):
        offset, owner, end = offsets.get(place), owners.get(place), ends.get(place)
        views.append(
            OffsetView(
                place.topic,
                place.partition,
                offset=offset.offset if offset else None,
                end=end,
                lag=end - offset.offset if offset and end is not None else None,
                leader_epoch=offset.leader_epoch if offset else None,
                metadata=offset.metadata if offset else None,
                member_id=owner.member_id if owner else None,
                client_id=owner.client_id if owner else None,
                client_host=owner.client_host if owner else None,
            )
        )
    return views
