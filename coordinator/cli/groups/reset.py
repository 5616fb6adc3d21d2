# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups reset`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.errors import EXIT_USAGE, CommandError, one_line_errors
from coordinator.cli.options import (
    DEFAULT_BOOTSTRAP,
    AllGroups,
    AllTopics,
    Bootstrap,
    CommandConfig,
    Execute,
    Force,
    Groups,
    Json,
    Timeout,
    Topics,
    chosen_groups,
    connect,
)


def reset(
    group: Groups = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    all_topics: AllTopics = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To where partitions start.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To where partitions end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To what is committed; to the end where nothing is.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option(metavar="OFFSET", min=0, help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(metavar="N", help="So much further than what is committed; back with -N.")
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="To where partitions were so long ago: PT1H30M, 90m, 7d."),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="To where partitions were then: 2026-11-22T10:30:00.000+01:00."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="To what a file says, as --export of this or of Kafka's tool writes it."
        ),
    ] = None,
    unchecked: Annotated[
        bool,
        typer.Option(
            "--unchecked", help="Do not ask where partitions start and end; offsets may then lie beyond."
        ),
    ] = False,
    execute: Execute = False,
    force: Force = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print the new offsets as CSV, as Kafka's tool does.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    json: Json = False,
    timeout: Timeout = 15.0,
) -> None:
    """Set the offsets of groups to another place.

    The strategies do what they do in kafka-consumer-groups.sh. Offsets by number are kept between the start and
    the end of their partitions. Exit code 1: something was not set.
    """
    with one_line_errors():
        from coordinator.cli.groups import changes
        from coordinator.cli.groups.planning import plan_changes, understand
        from coordinator.cli.resets.offsets_file import GroupOffsets, to_csv

        strategies = {
            "--to-earliest": to_earliest,
            "--to-latest": to_latest,
            "--to-current": to_current,
            "--to-offset": to_offset,
            "--shift-by": shift_by,
            "--by-duration": by_duration,
            "--to-datetime": to_datetime,
            "--from-file": from_file,
        }
        flag, value = _only_one(strategies)
        asked = understand(flag, value, topic, all_topics=all_topics, unchecked=unchecked)
        with connect(bootstrap, command_config, timeout) as client:
            chosen = chosen_groups(client, group, all_groups)
            current = changes.current_of(client, chosen)
            planned = plan_changes(client, asked, current)
            refused, failed = changes.settle(client, planned, execute=execute, force=force)
        if export:
            offsets = [GroupOffsets(each.group, list(each.wanted)) for each in planned]
            typer.echo(to_csv(offsets, named=all_groups or len(group or ()) > 1), nl=False)
            planned = []
        changes.report(planned, refused, failed, execute=execute, force=force, json=json and not export)


def _only_one(given: Mapping[str, object]) -> tuple[str, object]:
    """The strategy that was given, of all that there are. Raises CommandError where it is none, or several."""
    chosen = [(flag, value) for flag, value in given.items() if value is not None and value is not False]
    if len(chosen) != 1:
        raise CommandError(f"expected one of {', '.join(given)}", EXIT_USAGE)
    return chosen[0]
