# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups remove-members`."""

from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, ClusterOptions, Execute, OneGroup

if TYPE_CHECKING:
    from coordinator.cli.cluster.model import Member


@expand_dataclass_parameters
def remove_members(
    which: OneGroup,
    member: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A member by its id; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A static member by its group.instance.id; repeatable."),
    ] = None,
    all_members: Annotated[bool, typer.Option("--all-members", help="All members.")] = False,
    execute: Execute = False,
    *,
    at: ClusterOptions,
) -> None:
    """Remove members from a group.

    A client that still runs notices this at its next heartbeat, and joins again. Exit code 1 if a member does not
    exist, or was refused.
    """
    with exit_on_errors():
        group = which.group_id
        from coordinator.cli.cluster import group_and_member_removal, groups
        from coordinator.cli.cluster.client import get_answer_or_raise

        if all_members == bool(member or instance):
            raise CommandError("expected --member, --instance or --all-members", EXIT_USAGE)
        with at.connect() as client:
            answer = groups.describe(client, [group])[group]
            if answer is groups.NOT_FOUND:
                raise CommandError(f"group {group} not found")
            there = get_answer_or_raise(answer, f"describing group {group}").members
            chosen = there if all_members else _named(there, member or (), instance or ())
            refused = {}
            if execute and chosen:
                leaving = [group_and_member_removal.leaving_identity(each) for each in chosen]
                refused = group_and_member_removal.remove_members(client, group, leaving)
        for each in chosen:
            if group_and_member_removal.leaving_identity(each) not in refused:
                print_line(
                    f"{'removed' if execute else 'would be removed'}: {each.member_id} ({each.client_id})"
                )
        if not chosen:
            print_line("no members", err=True)
        elif not execute:
            print_line(NOTHING_DONE, err=True)
        if refused:
            each_why = ", ".join(f"{who} ({why})" for who, why in refused.items())
            raise CommandError(f"not removed: {each_why}")


def _named(
    there: "list[Member]", member_ids: "list[str] | tuple[()]", instances: "list[str] | tuple[()]"
) -> "list[Member]":
    by_id = {each.member_id: each for each in there}
    by_instance = {each.group_instance_id: each for each in there if each.group_instance_id is not None}
    missing = [f"--member {each}" for each in member_ids if each not in by_id]
    missing += [f"--instance {each}" for each in instances if each not in by_instance]
    if missing:
        raise CommandError(f"not in the group: {', '.join(missing)}")
    found = [by_id[each] for each in member_ids] + [by_instance[each] for each in instances]
    return list({each.member_id: each for each in found}.values())
