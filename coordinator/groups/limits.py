# SPDX-License-Identifier: Apache-2.0
"""The limits of what a node holds for all groups, and the errors for requests beyond these limits.

Kafka has none of these. A limit refuses only what is new: present members may rejoin unchanged, present offsets may be
committed again, and loading takes whatever the log holds. If room may become free, because something expires or the
limit is raised, the error is COORDINATOR_NOT_AVAILABLE: clients find the coordinator again and retry.
"""

from typing import Final

from coordinator.groups.classic.member import MemberMetadata
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.group_totals import GroupTotals, text_bytes
from coordinator.groups.offsets.committed import CommittedOffsets
from protocol.bounds import ITEMS_MAX
from protocol.compiled_struct import FieldsValue
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitResponsePartition
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId
from storage.format.records import TopicOffsetCommits

_MIB: Final = 1024 * 1024
_NONE: Final = (
    ErrorCode.NONE
)  # looked up once because each lookup of a member of the enum takes hundreds of instructions

REQUEST_METADATA_BYTES_MAX: Final = 16 * _MIB
"""An upper bound of one commit's metadata: its frame is shorter."""


@mypyc_attr(acyclic=True)
class NodeMemoryLimits(FieldsValue):
    """The most that a node holds in memory; the setting of a limit has the limit's name, with dots."""

    __match_args__: Final = (
        "max_groups",
        "max_group_ids_bytes",
        "max_members",
        "max_members_bytes",
        "max_pending_members",
        "group_members_max_bytes",
        "max_offsets",
        "max_offsets_metadata_bytes",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        *,
        max_groups: int = 500_000,
        max_group_ids_bytes: int = 64 * _MIB,
        max_members: int = 500_000,
        max_members_bytes: int = 512 * _MIB,
        max_pending_members: int = 100_000,
        group_members_max_bytes: int = 64 * _MIB,
        max_offsets: int = 10_000_000,
        max_offsets_metadata_bytes: int = 512 * _MIB,
    ) -> None:
        self.max_groups: Final = max_groups
        self.max_group_ids_bytes: Final = max_group_ids_bytes
        self.max_members: Final = max_members
        self.max_members_bytes: Final = max_members_bytes
        self.max_pending_members: Final = max_pending_members
        self.group_members_max_bytes: Final = group_members_max_bytes
        """The limit for one group, whose leader gets the metadata of all members in one response."""
        self.max_offsets: Final = max_offsets
        self.max_offsets_metadata_bytes: Final = max_offsets_metadata_bytes


def _refuse(
    usage: GroupTotals, setting: str, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
) -> ErrorCode:
    usage.refusals[setting] += 1
    return error


def refuse_group_over_limit(limits: NodeMemoryLimits, usage: GroupTotals, group_id: GroupId) -> ErrorCode:
    """Return NONE if there is room for one more group, else COORDINATOR_NOT_AVAILABLE; count the refusal."""
    if usage.groups >= limits.max_groups:
        return _refuse(usage, "max.groups")
    if usage.group_id_bytes + text_bytes(group_id) > limits.max_group_ids_bytes:
        return _refuse(usage, "max.group.ids.bytes")
    return _NONE


def refuse_offsets_over_limit(limits: NodeMemoryLimits, usage: GroupTotals, count: int) -> ErrorCode:
    """Return NONE if there is room for `count` more offsets, else COORDINATOR_NOT_AVAILABLE; count the refusal."""
    if usage.offsets + count > limits.max_offsets:
        return _refuse(usage, "max.offsets")
    return _NONE


def refuse_pending_over_limit(limits: NodeMemoryLimits, usage: GroupTotals, member_id: MemberId) -> ErrorCode:
    """Return NONE if one more member id may be given out, else COORDINATOR_NOT_AVAILABLE; count the refusal."""
    if usage.pending_members >= limits.max_pending_members:
        return _refuse(usage, "max.pending.members")
    if usage.member_bytes + text_bytes(member_id) > limits.max_members_bytes:
        return _refuse(usage, "max.members.bytes")
    return _NONE


def refuse_member_over_limit(
    limits: NodeMemoryLimits, usage: GroupTotals, group: GroupMetadata, member: MemberMetadata
) -> ErrorCode:
    """Return NONE if the node and the group have room for one more member, else an error; count the refusal.

    The error is GROUP_MAX_SIZE_REACHED if the group's members would be too large together, because only changes to
    the group's own clients help. Otherwise the error is COORDINATOR_NOT_AVAILABLE.
    """
    if usage.members >= limits.max_members:
        return _refuse(usage, "max.members")
    return refuse_member_bytes_over_limit(limits, usage, group, member.count_bytes())


def refuse_member_bytes_over_limit(
    limits: NodeMemoryLimits, usage: GroupTotals, group: GroupMetadata, more_bytes: int
) -> ErrorCode:
    """Return NONE if a group's members may take `more_bytes` more, else an error; count the refusal.

    The error is GROUP_MAX_SIZE_REACHED at the group's limit, and COORDINATOR_NOT_AVAILABLE at the node's.
    """
    if more_bytes <= 0:
        return _NONE
    if group.member_bytes + more_bytes > limits.group_members_max_bytes:
        return _refuse(usage, "group.members.max.bytes", ErrorCode.GROUP_MAX_SIZE_REACHED)
    if usage.member_bytes + more_bytes > limits.max_members_bytes:
        return _refuse(usage, "max.members.bytes")
    return _NONE


def has_room_for_any_commit(limits: NodeMemoryLimits, usage: GroupTotals) -> bool:
    """Return whether even the largest possible commit fits, so that the hot path need not check each commit."""
    return (
        usage.offsets + ITEMS_MAX <= limits.max_offsets
        and usage.offset_metadata_bytes + REQUEST_METADATA_BYTES_MAX <= limits.max_offsets_metadata_bytes
    )


class OffsetRoom:
    """The room that is left for the offsets of one commit, which its topics use up one after the other."""

    def __init__(self, limits: NodeMemoryLimits, usage: GroupTotals) -> None:
        self._usage = usage
        self._offsets = limits.max_offsets - usage.offsets
        self._metadata_bytes = limits.max_offsets_metadata_bytes - usage.offset_metadata_bytes

    def remove_excess_from_commits(
        self,
        offsets: CommittedOffsets,
        commits: TopicOffsetCommits,
        answers: list[OffsetCommitResponsePartition],
    ) -> None:
        """Remove from `commits` the offsets that do not fit, and put their errors into `answers`.

        New offsets beyond the limit get COORDINATOR_NOT_AVAILABLE. Offsets whose metadata is longer than before get
        OFFSET_METADATA_TOO_LARGE if the additional bytes do not fit.
        """
        known = offsets.get_topic_offsets(commits.topic)
        refused: dict[int, ErrorCode] = {}
        for partition, value in commits.values.items():
            before = known.get(partition)
            more_bytes = text_bytes(value.metadata) - (0 if before is None else text_bytes(before.metadata))
            if before is None and self._offsets <= 0:
                refused[partition] = _refuse(self._usage, "max.offsets")
            elif more_bytes > max(self._metadata_bytes, 0):
                setting = "max.offsets.metadata.bytes"
                refused[partition] = _refuse(self._usage, setting, ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                self._offsets -= before is None
                self._metadata_bytes -= more_bytes
        for partition in refused:
            commits.metadata_bytes -= text_bytes(commits.pop_partition(partition).metadata)
        for at, answer in enumerate(answers):
            error = refused.get(answer.partition_index)
            if error is not None and answer.error_code == _NONE:
                answers[at] = OffsetCommitResponsePartition(answer.partition_index, error)
