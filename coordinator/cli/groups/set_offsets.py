# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups set-offsets`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.errors import CommandError, one_line_errors
from coordinator.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, CommandConfig, Timeout, connect
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cli.cluster.offsets import Failures


def set_offsets(
    group: Annotated[
        str, typer.Argument(metavar="GROUP", help="The group's id; it may have no members, or not exist.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: a topic, a partition and an offset in each line.")
    ],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be set, and what is there now.")
    ] = False,
    command_config: CommandConfig = None,
    timeout: Timeout = 15.0,
) -> None:
    """Set a group's offsets to exactly what a file says, forward or backward.

    The file is as `kafka-consumer-groups.sh --reset-offsets --export` writes it. Where the ends of partitions are not
    known, Kafka's own tool refuses; this command does not ask for them.
    """
    with one_line_errors():
        from coordinator.cli.cluster import offsets
        from coordinator.cli.cluster.client import expect
        from coordinator.cli.cluster.model import CommittedOffset
        from coordinator.cli.render import print_table
        from coordinator.cli.resets.offsets_file import read_offsets

        wanted = [
            CommittedOffset(topic, number, at) for (topic, number), at in sorted(read_offsets(file).items())
        ]
        with connect(bootstrap, command_config, timeout) as client:
            answer = offsets.committed(client, [group])[group]
            before = {
                each.place: each.offset for each in expect(answer, f"reading the offsets of group {group}")
            }
            refused = {} if dry_run else offsets.commit(client, group, wanted)
        rows = [
            (each.topic, each.partition, before.get(each.place), each.offset)
            for each in wanted
            if each.place not in refused
        ]
        if rows:
            print_table(["TOPIC", "PARTITION", "BEFORE", "OFFSET"], rows)
        if refused:
            raise CommandError(_refused(refused))


def _refused(partitions: "Failures") -> str:
    each = ", ".join(f"{place} ({error})" for place, error in partitions.items())
    has_members = ErrorCode.UNKNOWN_MEMBER_ID.name in partitions.values()
    return f"not set: {each}{': the group has members; stop them first' if has_members else ''}"
