# SPDX-License-Identifier: Apache-2.0
"""Hard state: the records that change it, and the only functions that do, live and while loading.

At rest, Empty or Stable, a group is what its newest record says, in every field (`stored_value`), and only applying
another record changes that. A group that rebalances has left what the log says behind: the generation that is being
formed is soft, and gone after a restart. Rest is entered by a record alone.
"""

from collections.abc import Mapping
from sys import intern
from typing import Final

from msgspec import structs

from coordinator.groups.classic.member import MemberMetadata, shared_protocols
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from protocol.names import MemberId
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
)

_EMPTY: Final = GroupState.EMPTY
_STABLE: Final = GroupState.STABLE
"""Looked up here once: finding a member of an enum takes hundreds of instructions each time."""


def stored_value(group: GroupMetadata) -> GroupMetadataValue:
    """What the log says of a group that is at rest, Empty or Stable: the value of its newest record."""
    timestamp = group.current_state_timestamp
    members = [_stored_member(group, member, member.assignment) for member in group.members.values()]
    return _value(
        group, group.generation_id, group.protocol_name, members, -1 if timestamp is None else timestamp
    )


def empty_record(group: GroupMetadata, wall_ms: int) -> GroupMetadataRecord:
    """The record that makes a group that has lost its last member Empty, with a generation of its own."""
    return GroupMetadataRecord(group.group_id, _value(group, group.generation_id + 1, None, [], wall_ms))


def stable_record(
    group: GroupMetadata, assignments: Mapping[MemberId, bytes], wall_ms: int
) -> GroupMetadataRecord:
    """The record that makes the generation that was formed Stable, with these assignments by member id."""
    members = [
        _stored_member(group, member, assignments.get(member.member_id, b""))
        for member in group.members.values()
    ]
    value = _value(group, group.generation_id, group.protocol_name, members, wall_ms)
    return GroupMetadataRecord(group.group_id, value)


def replaced_record(
    group: GroupMetadata, old_member_id: MemberId, new: MemberValue
) -> tuple[GroupMetadataRecord, GroupMetadataValue]:
    """The record that gives a static member of a Stable group another id, and what it brings with it; its value."""
    value = stored_value(group)
    members = [member for member in value.members if member.member_id != old_member_id]
    leader = new.member_id if value.leader == old_member_id else value.leader
    value = structs.replace(value, leader=leader, members=(*members, new))
    return GroupMetadataRecord(group.group_id, value), value


def _value(
    group: GroupMetadata, generation: int, protocol: str | None, members: list[MemberValue], wall_ms: int
) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=generation,
        protocol=protocol,
        leader=group.leader_id,
        current_state_timestamp=wall_ms,
        members=tuple(members),
    )


def _stored_member(group: GroupMetadata, member: MemberMetadata, assignment: bytes) -> MemberValue:
    return MemberValue(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(group.protocol_name),
        assignment=assignment,
    )


def apply_group_metadata(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Make the group what the record says (GroupMetadataManager.replay of GroupMetadataValue).

    Members that the group has already keep their soft state, so that the live path, which made the record from
    them, loses nothing; while loading there are none and they come from the record alone.
    """
    recorded = {member.member_id for member in value.members}
    # On the live path nothing of this: a generation knows its topics since it was formed.
    is_other = value.protocol != group.protocol_name or (value.protocol_type or None) != group.protocol_type
    _rename_static_members(group, value)
    for member_id in [member_id for member_id in group.members if member_id not in recorded]:
        group.remove(member_id)
        is_other = True
    group.protocol_type = value.protocol_type or None
    for recorded_member in value.members:
        member = group.members.get(recorded_member.member_id)
        if member is None:
            group.add(_member(recorded_member, value))
            is_other = True
        elif _update_member(group, member, recorded_member, value):
            is_other = True
    _order_members(group, value)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    timestamp = value.current_state_timestamp
    group.current_state_timestamp = None if timestamp == -1 else timestamp
    state = _STABLE if value.members else _EMPTY
    if group.state is not state:
        group.previous_state, group.state = group.state, state
    group.rebalance = None
    group.forget_votes()
    if is_other or group.subscribed_topics is None:
        group.subscribed_topics = group.compute_subscribed_topics()


def _order_members(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Members stand in the order of the record: a static one that came back under another id has moved to the end."""
    order = [recorded.member_id for recorded in value.members]
    if order != list(group.members):
        group.members = {member_id: group.members[member_id] for member_id in order}


def _rename_static_members(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Who came back under another id is still the same member, with all that is soft of it (KIP-345)."""
    for recorded in value.members:
        instance_id = recorded.group_instance_id
        if instance_id is not None and recorded.member_id not in group.members:
            old_member_id = group.static_members.get(instance_id)
            if old_member_id is not None:
                group.replace_static_member(old_member_id, recorded.member_id)


def _member(recorded: MemberValue, value: GroupMetadataValue) -> MemberMetadata:
    return MemberMetadata(
        member_id=recorded.member_id,
        group_instance_id=recorded.group_instance_id,
        client_id=intern(recorded.client_id),
        client_host=intern(recorded.client_host),
        rebalance_timeout_ms=_rebalance_timeout_ms(recorded),
        session_timeout_ms=recorded.session_timeout,
        protocol_type=intern(value.protocol_type),
        supported_protocols=shared_protocols([(intern(value.protocol or ""), recorded.subscription)]),
        assignment=recorded.assignment,
    )


def _update_member(
    group: GroupMetadata, member: MemberMetadata, recorded: MemberValue, value: GroupMetadataValue
) -> bool:
    """Whether the member subscribes to something else now."""
    group.set_assignment(member, recorded.assignment)
    member.rebalance_timeout_ms = _rebalance_timeout_ms(recorded)
    member.session_timeout_ms = recorded.session_timeout
    name, subscription = value.protocol or "", recorded.subscription
    offers = member.supported_protocols
    if (name, subscription) in offers:
        return False
    if name in [offer for offer, _ in offers]:
        offers = [(offer, subscription if offer == name else metadata) for offer, metadata in offers]
    else:
        # Only while loading: an earlier record of this member was of another protocol.
        offers = [(name, subscription)]
    group.set_protocols(member, offers)
    return True


def _rebalance_timeout_ms(recorded: MemberValue) -> int:
    """Value version 0 has no rebalance timeout, read as -1; the session timeout stands in for it."""
    timeout_ms = recorded.rebalance_timeout
    return recorded.session_timeout if timeout_ms == -1 else timeout_ms


def forget_metadata(group: GroupMetadata) -> None:
    """What a group tombstone does to a group whose offsets are still there: only they remain."""
    for member_id in list(group.members):
        group.remove(member_id)
    group.forget_all_pending()
    group.state = group.previous_state = _EMPTY
    group.generation_id = 0
    group.protocol_type = group.protocol_name = group.leader_id = None
    group.current_state_timestamp = None
    group.rebalance = None
    group.subscribed_topics = None
