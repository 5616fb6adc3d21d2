# SPDX-License-Identifier: Apache-2.0
"""The kinds of groups that a partition can hold, and which of them each type of record belongs to."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator.groups.classic.group import KIND, ClassicGroup
from coordinator.groups.classic.state import GroupState
from coordinator.groups.group import Group
from coordinator.groups.group_totals import GroupTotals
from protocol.newtypes import GroupId
from storage.format.records import GroupMetadataRecord


class GroupKind:
    """One kind of group: its type in ListGroups, its states, and the types of the records that its groups store."""

    def __init__(
        self,
        name: str,
        states: type[enum.Enum],
        record_types: Sequence[type[Any]],
        group_type: type[Any],
    ) -> None:
        """`group_type` is the class of the groups: a Group that is made of its id and of the node's totals."""
        self.name: Final = name
        self.states: Final = states
        self.record_types: Final = record_types
        self.group_type: Final = group_type

    def make(self, group_id: GroupId, usage: GroupTotals) -> Group:
        """Return a new group that is in no partition yet; it counts into `usage`."""
        made: Group = self.group_type(group_id, usage)
        return made


class GroupKinds:
    """The kinds of groups of one node; a group that only offsets name is of the first kind (a simple group)."""

    def __init__(self, simple: GroupKind, *others: GroupKind) -> None:
        kinds = [simple, *others]
        self.simple: Final = simple
        self.by_record: Final[Mapping[type[Any], GroupKind]] = {
            record_type: kind for kind in kinds for record_type in kind.record_types
        }
        """The kind of the group that a record belongs to, by the record's type."""
        self.state_names: Final[Sequence[str]] = list(
            dict.fromkeys(state.value for kind in kinds for state in kind.states)
        )
        """The states of groups of all kinds, as clients see them."""


KINDS: Final = GroupKinds(GroupKind(KIND, GroupState, (GroupMetadataRecord,), ClassicGroup))
"""The kinds that are served."""
