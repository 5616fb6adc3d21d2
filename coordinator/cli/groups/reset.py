# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups reset`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors
from coordinator.cli.options import ClusterOptions, Execute, Force, GroupsToChange, Json, TopicSelection


@dataclass(frozen=True)
class ResetStrategyFlags:
    """The strategies of a reset, of which one is given."""

    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the start of each partition.")] = (
        False
    )
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of each partition.")] = False
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the committed offset; to the end if there is none.")
    ] = False
    to_offset: Annotated[int | None, typer.Option(metavar="OFFSET", min=0, help="To this offset.")] = None
    shift_by: Annotated[
        int | None, typer.Option(metavar="N", help="To the committed offset plus N; -N moves back.")
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="To the first record within this time: PT1H30M, 90m, 7d."),
    ] = None
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="To the first record since TIME: 2026-11-22T10:30:00.000+01:00."),
    ] = None
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="To the offsets in a file, written by --export of this or of Kafka's tool."
        ),
    ] = None

    def given_flag(self) -> tuple[str, object]:
        """Return the flag that was given, and its value. Raises CommandError if there is none, or several."""
        given = {f"--{each.name.replace('_', '-')}": getattr(self, each.name) for each in fields(self)}
        chosen = [(flag, value) for flag, value in given.items() if value is not None and value is not False]
        if len(chosen) != 1:
            raise CommandError(f"expected one of {', '.join(given)}", EXIT_USAGE)
        return chosen[0]


@expand_dataclass_parameters
def reset(
    which: GroupsToChange,
    topics: TopicSelection,
    where: ResetStrategyFlags,
    unchecked: Annotated[
        bool,
        typer.Option(
            "--unchecked", help="Do not ask for starts and ends of partitions; offsets may then lie outside."
        ),
    ] = False,
    execute: Execute = False,
    force: Force = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print the new offsets as CSV, as Kafka's tool does.")
    ] = False,
    *,
    at: ClusterOptions,
    json: Json = False,
) -> None:
    """Set the offsets of groups by a strategy.

    The strategies work as in kafka-consumer-groups.sh. Offsets given as numbers are limited to the start and the end
    of their partitions. Exit code 1: an offset was not set.
    """
    with exit_on_errors():
        from coordinator.cli.groups import changes
        from coordinator.cli.groups.planning import parse_flags, plan_changes
        from coordinator.cli.resets.offsets_file import GroupOffsets, to_csv

        flag, value = where.given_flag()
        asked = parse_flags(flag, value, topics.topic, all_topics=topics.all_topics, unchecked=unchecked)
        with at.connect() as client:
            chosen = which.resolve_group_ids(client)
            current = changes.read_current(client, chosen)
            planned = plan_changes(client, asked, current)
            refused, failed = changes.commit_changes(client, planned, execute=execute, force=force)
        if export:
            offsets = [GroupOffsets(each.group, list(each.wanted)) for each in planned]
            typer.echo(to_csv(offsets, named=which.all_groups or len(which.names) > 1), nl=False)
            planned = []
        changes.report(planned, refused, failed, execute=execute, force=force, json=json and not export)
