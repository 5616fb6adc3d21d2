# SPDX-License-Identifier: Apache-2.0
"""The summary of a group for clients."""

import msgspec

from coordinator.groups.classic.member import MemberSummary


class GroupSummary(msgspec.Struct, frozen=True):
    """A group as DescribeGroups shows it; `protocol` is empty until a generation has chosen one."""

    state: str
    protocol_type: str
    protocol: str
    members: list[MemberSummary]
