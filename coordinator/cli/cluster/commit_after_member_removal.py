# SPDX-License-Identifier: Apache-2.0
"""Sets offsets of a group that has members: removes the members, and commits before they are back.

A member learns at its next heartbeat or commit that it is unknown, and joins again; its commits until then are refused.
If a member is back before our commit, our commit is refused, and all members are removed again.
"""

from collections.abc import Sequence
from typing import Final

from coordinator.cli.cluster import groups
from coordinator.cli.cluster.client import Client, RefusedAnswer, get_answer_or_raise
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.group_and_member_removal import leaving_identity, remove_at_coordinator
from coordinator.cli.cluster.group_offset_requests import (
    OFFSETS_AT_ONCE,
    Failures,
    commit,
    commit_at_coordinator,
)
from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.retrying import RetryLater
from protocol.errors import ErrorCode

_THEY_ARE_BACK: Final = ErrorCode.UNKNOWN_MEMBER_ID.name
"""The error of a commit without a member while the group has members."""


def fence_and_commit(client: Client, group: str, offsets: Sequence[CommittedOffset]) -> Failures:
    """Remove all members of the group and commit the offsets; return the partitions that were refused.

    Raises CommandError if a member cannot be removed, or if members are back each time until the client's time is up.
    """
    doing, at_once = f"setting offsets of group {group}", offsets[:OFFSETS_AT_ONCE]

    def attempt() -> Failures:
        failures = client.ask_group_coordinator(
            "setting offsets of", group, lambda each: _once(each, group, at_once)
        )
        if _THEY_ARE_BACK in failures.values():
            raise RetryLater(doing, ErrorCode.UNKNOWN_MEMBER_ID)
        return failures

    failures = client.call_with_retries(attempt)
    return failures | commit(client, group, offsets[OFFSETS_AT_ONCE:])


def _once(
    connection: NodeConnection, group: str, offsets: Sequence[CommittedOffset]
) -> Failures | RefusedAnswer:
    described = groups.describe_at_coordinator(connection, [group])[group]
    if described is not groups.NOT_FOUND:
        if isinstance(described, RefusedAnswer):
            return described
        members = [leaving_identity(member) for member in described.members]
        refused = (
            get_answer_or_raise(
                remove_at_coordinator(connection, group, members), f"removing members of group {group}"
            )
            if members
            else {}
        )
        kept = [who for who, why in refused.items() if why.code != ErrorCode.UNKNOWN_MEMBER_ID]
        if kept:
            raise CommandError(
                f"not removed from group {group}: {', '.join(map(str, kept))}; nothing was set"
            )
    return commit_at_coordinator(connection, group, offsets)
