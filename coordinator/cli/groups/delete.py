# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups delete`."""

from typing import TYPE_CHECKING

from coordinator.cli.errors import CommandError, one_line_errors, tell
from coordinator.cli.options import (
    DEFAULT_BOOTSTRAP,
    NOTHING_DONE,
    AllGroups,
    Bootstrap,
    CommandConfig,
    Execute,
    Groups,
    Timeout,
    chosen_groups,
    connect,
)
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cli.cluster.client import Refused


def delete(
    group: Groups = None,
    all_groups: AllGroups = False,
    execute: Execute = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = 15.0,
) -> None:
    """Delete groups without members, and their offsets.

    Exit code 1 where a group was not deleted, or could not be.
    """
    with one_line_errors():
        from coordinator.cli.cluster import groups, membership
        from coordinator.cli.cluster.client import Refused

        with connect(bootstrap, command_config, timeout) as client:
            chosen = chosen_groups(client, group, all_groups)
            failed: dict[str, Refused] = {}
            for name, answer in groups.describe(client, chosen).items():
                if isinstance(answer, Refused):
                    failed[name] = answer
                elif membership.is_active(answer):
                    failed[name] = Refused(ErrorCode.NON_EMPTY_GROUP)
            deletable = [name for name in chosen if name not in failed]
            if execute:
                answers = membership.delete_groups(client, deletable)
                failed |= {name: answer for name, answer in answers.items() if answer is not None}
        for name in chosen:
            if name not in failed:
                tell(f"{'deleted' if execute else 'would be deleted'}: {name}")
        if not execute:
            tell(NOTHING_DONE, err=True)
        if failed:
            raise CommandError("; ".join(_why(name, answer) for name, answer in failed.items()))


def _why(group: str, answer: "Refused") -> str:
    if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"group {group} not found"
    if answer.code == ErrorCode.NON_EMPTY_GROUP:
        return f"group {group} has members (stop them first)"
    return f"deleting group {group}: {answer}"
