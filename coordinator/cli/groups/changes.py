# SPDX-License-Identifier: Apache-2.0
"""Shows the offsets that a command would set next to the current ones, and commits them with --execute.

The commands `reset`, `import` and `copy` use the module; they differ in where the offsets come from.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.errors import CommandError, print_line
from coordinator.cli.options import NOTHING_DONE
from coordinator.cli.progress import ProgressBar
from coordinator.cli.texts import format_count, format_first_few
from coordinator.cluster_requests.model import TopicPartition
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cli.cluster.client import Client
    from coordinator.cli.cluster.group_offset_requests import Failures


class CurrentGroup(msgspec.Struct, frozen=True):
    """A group before the change; it need not exist, and then has no members and offsets."""

    members: int
    exists: bool
    committed: Mapping[TopicPartition, CommittedOffset]

    @property
    def has_members(self) -> bool:
        """True if the group has members; then only they may set its offsets."""
        return self.members > 0

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The committed offsets, by partition."""
        return {place: each.offset for place, each in self.committed.items()}


class GroupOffsetsChange(msgspec.Struct, frozen=True):
    """The offsets to set in one group."""

    group: str
    current: CurrentGroup
    wanted: Sequence[CommittedOffset]
    kept: Sequence[TopicPartition] = ()
    """The partitions in `wanted` whose requested offset lies before the start, or behind the end."""


class Row(msgspec.Struct, frozen=True):
    """One partition in the JSON of a change; `before` is None if nothing was committed."""

    group: str
    topic: str
    partition: int
    before: int | None
    offset: int


def read_current(client: "Client", groups: Sequence[str]) -> dict[str, CurrentGroup]:
    """Return the state and offsets of groups. Raises CommandError if one cannot be read."""
    from coordinator.cli.cluster import group_offset_requests
    from coordinator.cli.cluster import groups as asking
    from coordinator.cli.cluster.client import get_answer_or_raise

    described = asking.describe(client, groups)
    committed = group_offset_requests.fetch_committed_offsets(client, groups)
    found = {}
    for group in groups:
        answer = described[group]
        exists = answer is not asking.NOT_FOUND
        members = len(get_answer_or_raise(answer, f"describing group {group}").members) if exists else 0
        rows = get_answer_or_raise(committed[group], f"reading the offsets of group {group}")
        found[group] = CurrentGroup(members, exists, {row.place: row for row in rows})
    return found


def commit_changes(
    client: "Client", changes: Sequence[GroupOffsetsChange], *, execute: bool, force: bool
) -> "tuple[dict[str, Failures], list[str]]":
    """Commit the changes if `execute` is set.

    Returns the refused partitions by group, and a line for each group of which something was refused.
    """
    from coordinator.cli.cluster.commit_after_member_removal import fence_and_commit
    from coordinator.cli.cluster.error_texts import describe_refused_offsets
    from coordinator.cli.cluster.group_offset_requests import commit

    refused: dict[str, Failures] = {}
    failed: list[str] = []
    for change in ProgressBar("committing offsets of groups")(changes) if execute else changes:
        if change.current.has_members and not force:
            message = f"group {change.group} has members: stop them first, or remove them with --force"
            refused[change.group] = {row.place: ErrorCode.NON_EMPTY_GROUP.name for row in change.wanted}
            failed.append(message)
        elif execute:
            set_offsets = fence_and_commit if force else commit
            try:
                refused[change.group] = set_offsets(client, change.group, change.wanted)
            except CommandError as error:
                refused[change.group] = {row.place: "" for row in change.wanted}
                failed.append(str(error))
                continue
            if refused[change.group]:
                failed.append(describe_refused_offsets(change.group, refused[change.group]))
    return refused, failed


def report(
    changes: Sequence[GroupOffsetsChange],
    refused: "Mapping[str, Failures]",
    failed: Sequence[str],
    *,
    execute: bool,
    force: bool,
    json: bool,
) -> None:
    """Print the offsets that were set, or would be. Raises CommandError if something failed."""
    from coordinator.cli.render import print_json, print_table

    rows = [
        Row(change.group, row.topic, row.partition, change.current.offsets.get(row.place), row.offset)
        for change in changes
        for row in change.wanted
        if not execute or row.place not in refused.get(change.group, {})
    ]
    if json:
        print_json(rows)
    elif rows:
        columns = ["GROUP", "TOPIC", "PARTITION", "BEFORE", "OFFSET"]
        print_table(columns, [(r.group, r.topic, r.partition, r.before, r.offset) for r in rows])
    sys.stdout.flush()
    for change in changes:
        if not change.current.exists and not execute:
            print_line(f"group {change.group} does not exist yet", err=True)
        if change.current.has_members and force and not execute:
            members = format_count(change.current.members, "member")
            print_line(f"group {change.group} has {members}, which would be removed", err=True)
        if change.kept:
            print_line(
                f"group {change.group}: limited to start or end: {format_first_few(change.kept)}", err=True
            )
    if not execute:
        print_line(NOTHING_DONE, err=True)
    if failed:
        raise CommandError("; ".join(failed))
