# SPDX-License-Identifier: Apache-2.0
"""What the `groups` commands show; the field names are those of their JSON."""

import msgspec


class GroupListing(msgspec.Struct, frozen=True):
    """One group of `groups list`; `type` is empty where the server does not say (before Kafka 3.8)."""

    group: str
    state: str
    type: str
    protocol_type: str


class Assignment(msgspec.Struct, frozen=True, order=True):
    """The partitions of one topic that a member has."""

    topic: str
    partitions: list[int]


class Member(msgspec.Struct, frozen=True):
    """One member; `assignment` is empty where it has none or it cannot be read."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: list[Assignment]


class GroupDetails(msgspec.Struct, frozen=True):
    """A group as its coordinator describes it."""

    group: str
    state: str
    protocol_type: str
    protocol: str
    coordinator_id: int
    coordinator: str
    members: list[Member]


class CommittedOffset(msgspec.Struct, frozen=True, order=True):
    """What a group has committed for one partition; leader epoch -1 means that it is not known."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class StateView(msgspec.Struct, frozen=True):
    """The group in one line."""

    state: str
    members: int
    protocol_type: str
    protocol: str
    coordinator_id: int
    coordinator: str


class OffsetView(msgspec.Struct, frozen=True):
    """One partition that a group has committed or has assigned; None where it has not."""

    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    member_id: str | None
    client_id: str | None
    client_host: str | None


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of `groups describe` that were asked for."""

    group: str
    state: StateView | None = None
    members: list[Member] | None = None
    offsets: list[OffsetView] | None = None


def state_view(details: GroupDetails) -> StateView:
    """The group in one line."""
    return StateView(
        details.state,
        len(details.members),
        details.protocol_type,
        details.protocol,
        details.coordinator_id,
        details.coordinator,
    )


def offset_views(details: GroupDetails, committed: list[CommittedOffset]) -> list[OffsetView]:
    """Every partition that has an offset or a reader, in order."""
    owners = {
        (assignment.topic, partition): member
        for member in details.members
        for assignment in member.assignment
        for partition in assignment.partitions
    }
    offsets = {(offset.topic, offset.partition): offset for offset in committed}
    views = []
    for topic, partition in sorted(owners.keys() | offsets.keys()):
        offset, owner = offsets.get((topic, partition)), owners.get((topic, partition))
        views.append(
            OffsetView(
                topic,
                partition,
                offset=offset.offset if offset else None,
                leader_epoch=offset.leader_epoch if offset else None,
                metadata=offset.metadata if offset else None,
                member_id=owner.member_id if owner else None,
                client_id=owner.client_id if owner else None,
                client_host=owner.client_host if owner else None,
            )
        )
    return views
