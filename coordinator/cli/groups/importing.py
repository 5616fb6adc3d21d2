# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups import`."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors
from coordinator.cli.options import ClusterOptions, Execute, Force, Json, Topics


@expand_dataclass_parameters
def import_offsets(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV or JSON of `groups export`, or CSV of Kafka's tool.")
    ],
    group: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="The group to set, if the file names no groups; otherwise import only this group.",
        ),
    ] = None,
    topic: Topics = None,
    execute: Execute = False,
    force: Force = False,
    *,
    at: ClusterOptions,
    json: Json = False,
) -> None:
    """Set offsets to exactly those in a file.

    They may go forward or backward, and are not compared with the ends of partitions. Groups need not exist. Kafka's
    own tool refuses to do this if ends are not known. Exit code 1: an offset was not set.
    """
    with exit_on_errors():
        from coordinator.cli.groups import changes
        from coordinator.cli.resets.offsets_file import get_group_offsets, read_offsets
        from coordinator.cli.resets.wanted_partitions import is_wanted, parse_topics

        found = read_offsets(file)
        if None in found and group is None:
            raise CommandError(f"{file} names no groups: name the group with --group", EXIT_USAGE)
        by_group = {group: get_group_offsets(file, found, group)} if group is not None else found
        wanted = parse_topics(topic) if topic else None
        offsets = {
            str(name): [row for row in rows if wanted is None or is_wanted(row.place, wanted)]
            for name, rows in by_group.items()
        }
        with at.connect() as client:
            current = changes.read_current(client, list(offsets))
            planned = [
                changes.GroupOffsetsChange(name, current[name], sorted(rows))
                for name, rows in offsets.items()
                if rows
            ]
            refused, failed = changes.commit_changes(client, planned, execute=execute, force=force)
        changes.report(planned, refused, failed, execute=execute, force=force, json=json)
