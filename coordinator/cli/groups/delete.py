# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups delete`."""

from typing import TYPE_CHECKING

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, ClusterOptions, Execute, GroupsToChange
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cli.cluster.client import RefusedAnswer


@expand_dataclass_parameters
def delete(
    which: GroupsToChange,
    execute: Execute = False,
    *,
    at: ClusterOptions,
) -> None:
    """Delete groups without members, and their offsets.

    Exit code 1 if a group was not deleted, or could not be.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import group_and_member_removal, groups
        from coordinator.cli.cluster.client import RefusedAnswer

        with at.connect() as client:
            chosen = which.resolve_group_ids(client)
            failed: dict[str, RefusedAnswer] = {}
            for name, answer in groups.describe(client, chosen).items():
                if isinstance(answer, RefusedAnswer):
                    failed[name] = answer
                elif group_and_member_removal.is_active(answer):
                    failed[name] = RefusedAnswer(ErrorCode.NON_EMPTY_GROUP)
            deletable = [name for name in chosen if name not in failed]
            if execute:
                answers = group_and_member_removal.delete_groups(client, deletable)
                failed |= {name: answer for name, answer in answers.items() if answer is not None}
        for name in chosen:
            if name not in failed:
                print_line(f"{'deleted' if execute else 'would be deleted'}: {name}")
        if not execute:
            print_line(NOTHING_DONE, err=True)
        if failed:
            raise CommandError("; ".join(_why(name, answer) for name, answer in failed.items()))


def _why(group: str, answer: "RefusedAnswer") -> str:
    if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"group {group} not found"
    if answer.code == ErrorCode.NON_EMPTY_GROUP:
        return f"group {group} has members (stop them first)"
    return f"deleting group {group}: {answer}"
