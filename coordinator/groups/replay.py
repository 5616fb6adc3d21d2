# SPDX-License-Identifier: Apache-2.0
"""The only writers of hard state: what a record of the log does to a group, live and while loading."""

from collections.abc import Mapping

from coordinator.groups.member import MemberMetadata
from coordinator.groups.metadata import GroupMetadata
from coordinator.groups.state import GroupState
from coordinator.groups.usage import text_bytes
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommits,
)


def group_metadata_record(group: GroupMetadata, assignments: Mapping[str, bytes]) -> GroupMetadataRecord:
    """The record that makes the group's generation, with these assignments by member id, survive a restart."""
    timestamp = group.current_state_timestamp
    return GroupMetadataRecord(
        group=group.group_id,
        value=GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=-1 if timestamp is None else timestamp,
            members=tuple(
                MemberValue(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in group.members.values()
            ),
        ),
    )


def apply_group_metadata(group: GroupMetadata, value: GroupMetadataValue) -> None:
    """Make the group what the record says (GroupMetadataManager.replay of GroupMetadataValue).

    Members that the group has already keep their soft state, so that the live path, which made the record from
    them, loses nothing; while loading there are none and they come from the record alone.
    """
    recorded = {member.member_id for member in value.members}
    for member_id in [member_id for member_id in group.members if member_id not in recorded]:
        group.remove(member_id)
    group.protocol_type = value.protocol_type or None
    for recorded_member in value.members:
        member = group.members.get(recorded_member.member_id)
        if member is None:
            group.add(_member(recorded_member, value))
        else:
            _update_member(group, member, recorded_member, value)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    timestamp = value.current_state_timestamp
    group.current_state_timestamp = None if timestamp == -1 else timestamp
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    if group.state is not state:
        group.previous_state, group.state = group.state, state
    group.subscribed_topics = group.compute_subscribed_topics()


def _member(recorded: MemberValue, value: GroupMetadataValue) -> MemberMetadata:
    return MemberMetadata(
        member_id=recorded.member_id,
        group_instance_id=recorded.group_instance_id,
        client_id=recorded.client_id,
        client_host=recorded.client_host,
        rebalance_timeout_ms=_rebalance_timeout_ms(recorded),
        session_timeout_ms=recorded.session_timeout,
        protocol_type=value.protocol_type,
        supported_protocols=[(value.protocol or "", recorded.subscription)],
        assignment=recorded.assignment,
    )


def _update_member(
    group: GroupMetadata, member: MemberMetadata, recorded: MemberValue, value: GroupMetadataValue
) -> None:
    group.set_assignment(member, recorded.assignment)
    member.rebalance_timeout_ms = _rebalance_timeout_ms(recorded)
    member.session_timeout_ms = recorded.session_timeout
    offered = (value.protocol or "", recorded.subscription)
    if offered not in member.supported_protocols:
        # Only while loading: an earlier record of this member was of another protocol or subscription.
        group.set_protocols(member, [offered])


def _rebalance_timeout_ms(recorded: MemberValue) -> int:
    """Value version 0 has no rebalance timeout, read as -1; the session timeout stands in for it."""
    timeout_ms = recorded.rebalance_timeout
    return recorded.session_timeout if timeout_ms == -1 else timeout_ms


def forget_metadata(group: GroupMetadata) -> None:
    """What a group tombstone does to a group whose offsets are still there: only they remain."""
    for member_id in list(group.members):
        group.remove(member_id)
    group.forget_all_pending()
    group.state = group.previous_state = GroupState.EMPTY
    group.generation_id = 0
    group.protocol_type = group.protocol_name = group.leader_id = None
    group.current_state_timestamp = None
    group.subscribed_topics = None


def apply_offset_commit(
    group: GroupMetadata, topic: str, partition: int, value: OffsetAndMetadata | None
) -> None:
    """Set a partition's committed offset, or take it away when the record is a tombstone."""
    partitions = group.offsets.get(topic)
    before = None if partitions is None else partitions.get(partition)
    group.count_offsets(
        (value is not None) - (before is not None),
        (0 if value is None else text_bytes(value.metadata))
        - (0 if before is None else text_bytes(before.metadata)),
    )
    if value is None:
        if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
            del group.offsets[topic]
    elif partitions is None:
        group.offsets[topic] = {partition: value}
    else:
        partitions[partition] = value


def apply_offset_commits(group: GroupMetadata, commits: OffsetCommits) -> None:
    """Set the committed offsets of all partitions of a topic that one commit names."""
    values = commits.values
    partitions = group.offsets.get(commits.topic)
    if partitions is None:
        group.offsets[commits.topic] = values
        group.count_offsets(len(values), commits.metadata_bytes)
        return
    more_metadata_bytes = commits.metadata_bytes
    if group.offset_metadata_bytes:
        for partition in values:
            before = partitions.get(partition)
            if before is not None:
                more_metadata_bytes -= text_bytes(before.metadata)
    count = len(partitions)
    partitions.update(values)
    group.count_offsets(len(partitions) - count, more_metadata_bytes)
