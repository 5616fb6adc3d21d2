# SPDX-License-Identifier: Apache-2.0
"""Moves one group after the other; an error about one group does not stop the others."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from coordinator.cli.errors import CommandError
from coordinator.cli.moving.private_nodes_client import PrivateNodes
from coordinator.cli.moving.results import (
    GroupMoveResult,
    make_failed_move_result,
    make_group_adoption_result,
    make_group_give_back_result,
)
from coordinator.cli.progress import ProgressBar
from coordinator.migration.protocol import adopt_group, give_back_group
from coordinator.upstream.errors import RetryTimeout, UpstreamRequestRefused
from coordinator.upstream.groups import UpstreamGroups
from protocol.newtypes import GroupId

OF_CONSUMERS: Final = ("", "classic", "consumer")
"""The kinds of groups that `adopt --all` takes; old brokers name none.

A share group has no committed offsets. A streams group has to be named: its application cannot follow it to a gateway
before it is set to the classic protocol.
"""


@dataclass(frozen=True, slots=True)
class GroupMoveRequest:
    """The groups to move, None for all of them, and the flags of the command."""

    groups: list[GroupId] | None
    dry_run: bool
    take_live: bool = False
    delete_rest: bool = False


async def adopt_requested_groups(
    here: PrivateNodes, there: UpstreamGroups, move: GroupMoveRequest, done: list[GroupMoveResult]
) -> None:
    """Take groups over, and add each to `done`. Raises UpstreamError and CommandError if none can be taken over."""
    groups = move.groups
    if groups is None:
        listed = await there.list_groups()
        groups = sorted(group for group, each in listed.items() if each.kind in OF_CONSUMERS)

    async def one(group: GroupId) -> GroupMoveResult:
        result = await adopt_group(here, there, group, take_live=move.take_live, dry_run=move.dry_run)
        return make_group_adoption_result(result, dry_run=move.dry_run)

    await _each("taking groups over", groups, one, done)


async def give_back_requested_groups(
    here: PrivateNodes, there: UpstreamGroups, move: GroupMoveRequest, done: list[GroupMoveResult]
) -> None:
    """Give groups back, one after the other, and add the result of each, or its failure, to `done`.

    Raises UpstreamError and CommandError for an error that is not about a single group.
    """
    groups = await here.list_groups() if move.groups is None else move.groups

    async def one(group: GroupId) -> GroupMoveResult:
        result = await give_back_group(here, there, group, delete_rest=move.delete_rest, dry_run=move.dry_run)
        return make_group_give_back_result(result, dry_run=move.dry_run)

    await _each("giving groups back", groups, one, done)


async def _each(
    doing: str,
    groups: list[GroupId],
    one: Callable[[GroupId], Awaitable[GroupMoveResult]],
    done: list[GroupMoveResult],
) -> None:
    for group in ProgressBar(doing)(groups):
        try:
            done.append(await one(group))
        except (UpstreamRequestRefused, RetryTimeout, CommandError) as error:
            done.append(make_failed_move_result(group, error))
