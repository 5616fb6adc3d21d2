# SPDX-License-Identifier: Apache-2.0
"""A look at the groups of a manager, for tests that know of which kind they are."""

from coordinator.groups.classic.group import ClassicGroup
from coordinator.partitions.manager import GroupMetadataManager
from protocol.newtypes import GroupId


def classic(manager: GroupMetadataManager, group_id: str = "g") -> ClassicGroup | None:
    """The members of a group of an owned partition; None where there is no such group."""
    kept = manager.find(GroupId(group_id))
    return None if kept is None else kept.classic_group
