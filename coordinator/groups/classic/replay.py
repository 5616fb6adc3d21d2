# SPDX-License-Identifier: Apache-2.0
"""The records of a group's hard state, and the only functions that change that state, live and while loading.

A group at rest, Empty or Stable, equals its newest record in every field (`rebuild_last_record_value`), and only
applying another record changes it. A group that rebalances differs from the log: the generation that is being formed is
soft state, and lost after a restart. Only a record brings a group to rest.
"""

from collections.abc import Mapping
from sys import intern
from typing import Final

from msgspec import structs

from coordinator.groups.classic.member import MemberMetadata, intern_protocols
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from protocol.newtypes import MemberId
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
)

_EMPTY: Final = GroupState.EMPTY
_STABLE: Final = GroupState.STABLE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""


def rebuild_last_record_value(group: GroupMetadata) -> GroupMetadataValue:
    """Return the value of the newest record of a group that is at rest, Empty or Stable."""
    timestamp = group.current_state_timestamp
    members = [_stored_member(group, member, member.assignment) for member in group.members.values()]
    return _value(
        group, group.generation_id, group.protocol_name, members, -1 if timestamp is None else timestamp
    )


def make_empty_group_record(group: GroupMetadata, wall_ms: int) -> GroupMetadataRecord:
    """Return the record that makes a group without members Empty, in the next generation."""
    return GroupMetadataRecord(group.group_id, _value(group, group.generation_id + 1, None, [], wall_ms))


def make_stable_group_record(
    group: GroupMetadata, assignments: Mapping[MemberId, bytes], wall_ms: int
) -> GroupMetadataRecord:
    """Return the record that makes the formed generation Stable, with these assignments by member id."""
    members = [
        _stored_member(group, member, assignments.get(member.member_id, b""))
        for member in group.members.values()
    ]
    value = _value(group, group.generation_id, group.protocol_name, members, wall_ms)
    return GroupMetadataRecord(group.group_id, value)


def make_replaced_member_record(
    group: GroupMetadata, old_member_id: MemberId, new: MemberValue
) -> tuple[GroupMetadataRecord, GroupMetadataValue]:
    """Return the record, and its value, that replaces a static member of a Stable group with `new`."""
    value = rebuild_last_record_value(group)
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
    """Set the group's hard state to the record's (GroupMetadataManager.replay of GroupMetadataValue).

    Members that the group has already keep their soft state, because the live path has made the record from
    them; while loading the group has none, and they are made from the record alone.
    """
    recorded = {member.member_id for member in value.members}
    # Mostly False on the live path: the topics are computed when the generation is formed.
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
    group.free_cached_votes()
    if is_other or group.subscribed_topics is None:
        group.subscribed_topics = group.compute_subscribed_topics()


def _order_members(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Order the members as in the record: a static one that was replaced has moved to the end."""
    order = [recorded.member_id for recorded in value.members]
    if order != list(group.members):
        group.members = {member_id: group.members[member_id] for member_id in order}


def _rename_static_members(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Give static members that rejoined under another id that id; they keep their soft state (KIP-345)."""
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
        supported_protocols=intern_protocols([(intern(value.protocol or ""), recorded.subscription)]),
        assignment=recorded.assignment,
    )


def _update_member(
    group: GroupMetadata, member: MemberMetadata, recorded: MemberValue, value: GroupMetadataValue
) -> bool:
    """Update a member from its record, and return whether its subscription has changed."""
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
        # Only while loading: an earlier record of this member had another protocol.
        offers = [(name, subscription)]
    group.set_protocols(member, offers)
    return True


def _rebalance_timeout_ms(recorded: MemberValue) -> int:
    """Return the rebalance timeout, or the session timeout for version 0, which has none and is read as -1."""
    timeout_ms = recorded.rebalance_timeout
    return recorded.session_timeout if timeout_ms == -1 else timeout_ms


def forget_metadata(group: GroupMetadata) -> None:
    """Reset everything but the group's offsets, because a tombstone of the group was read."""
    for member_id in list(group.members):
        group.remove(member_id)
    group.forget_all_pending()
    group.state = group.previous_state = _EMPTY
    group.generation_id = 0
    group.protocol_type = group.protocol_name = group.leader_id = None
    group.current_state_timestamp = None
    group.rebalance = None
    group.subscribed_topics = None
