# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups delete-offsets`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, AllTopics, ClusterOptions, Execute, OneGroup, Topics
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.cli.cluster.group_offset_requests import Failures
    from coordinator.cli.cluster.model import CommittedOffset


@expand_dataclass_parameters
def delete_offsets(
    which: OneGroup,
    topic: Topics = None,
    all_topics: AllTopics = False,
    from_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The partitions listed in a file of `groups export`."),
    ] = None,
    execute: Execute = False,
    *,
    at: ClusterOptions,
) -> None:
    """Delete committed offsets of a group.

    Offsets in topics that members of the group consume are refused. Exit code 1 if there are none, or one was refused.
    """
    with exit_on_errors():
        group = which.group_id
        from coordinator.cli.cluster import group_offset_requests
        from coordinator.cli.cluster.client import get_answer_or_raise
        from coordinator.cli.resets.offsets_file import get_group_offsets, read_offsets
        from coordinator.cli.resets.wanted_partitions import is_wanted, parse_topics

        if (all_topics, bool(topic), from_file is not None).count(True) != 1:
            raise CommandError("expected one of --topic, --all-topics, --from-file", EXIT_USAGE)
        wanted = parse_topics(topic or ())
        named = set()
        if from_file:
            named = {row.place for row in get_group_offsets(from_file, read_offsets(from_file), group)}
        with at.connect() as client:
            found = group_offset_requests.fetch_committed_offsets(client, [group])[group]
            rows = get_answer_or_raise(found, f"reading the offsets of group {group}")
            chosen = [row for row in rows if all_topics or row.place in named or is_wanted(row.place, wanted)]
            if not chosen:
                raise CommandError(f"group {group} has no such offsets")
            refused: Failures = {}
            if execute:
                refused = group_offset_requests.delete_offsets(client, group, [row.place for row in chosen])
        _report([row for row in chosen if row.place not in refused], execute=execute)
        if refused:
            raise CommandError(_refused(refused))


def _report(gone: "Sequence[CommittedOffset]", *, execute: bool) -> None:
    from coordinator.cli.render import print_table
    from coordinator.cli.texts import format_count

    if gone:
        rows = [(row.topic, row.partition, row.offset) for row in gone]
        print_table(["TOPIC", "PARTITION", "OFFSET"], rows)
        print_line(
            f"{'deleted' if execute else 'would be deleted'}: {format_count(len(gone), 'offset')}", err=True
        )
    if not execute:
        print_line(NOTHING_DONE, err=True)


def _refused(partitions: "Failures") -> str:
    each = ", ".join(f"{place} ({error})" for place, error in partitions.items())
    consumed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC.name in partitions.values()
    return f"not deleted: {each}{': members of the group consume the topic' if consumed else ''}"
