# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups expiring`, which shows which offsets will expire, and when."""

import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.data_dir import load_serve_settings, require_directory
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors
from coordinator.cli.node_http import DEFAULT_NODE, fetch_json
from coordinator.cli.progress import ProgressBar

if TYPE_CHECKING:
    from coordinator.jobs.expiry_preview import ExpiryPreview

UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,9})([smhdw])")


def expiring(
    within: Annotated[str, typer.Option(metavar="TIME", help="How far ahead to look: 30m, 12h, 7d.")] = "7d",
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"A running node's metrics.listen; if there are several nodes, name each. [default: {DEFAULT_NODE}]",
        ),
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Read a stopped node's data directory instead of asking a node."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait.")] = 15.0,
) -> None:
    """Show which committed offsets will expire, and when.

    The times assume that groups stay as they are. Offsets in topics that a group's members consume do not expire,
    nor do those of a group that is rebalancing.
    """
    with exit_on_errors():
        from coordinator.cli import render
        from coordinator.jobs.expiry_preview import ExpiryPreview, merge_into_first_preview

        within_ms = _milliseconds(within)
        if data_dir is not None:
            found = _read(data_dir, within_ms)
        else:
            found = merge_into_first_preview(
                [
                    fetch_json(each, f"/groups/expiring?within_ms={within_ms}", ExpiryPreview, timeout)
                    for each in node or [DEFAULT_NODE]
                ]
            )
        if json:
            render.print_json([found])
        else:
            _print(found, within)


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise CommandError(f"--within {text}: expected a number with s, m, h, d or w, such as 7d", EXIT_USAGE)
    return int(match[1]) * UNITS_MS[match[2]]


def _read(data_dir: str, within_ms: int) -> "ExpiryPreview":
    """Return the expiring offsets in a stopped node's directory, which is not changed. Raises CommandError."""
    from coordinator.host_resources import real_machine
    from coordinator.jobs.expiry_preview import ExpiryPreview, add_groups_to_preview
    from coordinator.partitions.offline_partition_reader import read_shard
    from storage.disk.layout import journal_dirs
    from storage.errors import StorageError
    from storage.format.record_decoder import RecordDecoder
    from storage.recovery.full_check import check_directory

    machine, settings = real_machine(), load_serve_settings(data_dir)
    fs = machine.fs
    directory = require_directory(settings.data_dir)
    preview = ExpiryPreview(machine.clock.wall_ms(), within_ms, settings.offsets_retention_ms)
    try:
        found = check_directory(fs, directory, track=ProgressBar("reading partitions"))
        if found.in_use is not None:
            raise CommandError(f"{directory}: {found.in_use}: ask it with --node")
        if found.journals or journal_dirs(fs.listdir(directory), directory):
            raise CommandError(
                f"{directory}: the node was not stopped cleanly: start it, and ask it with --node"
            )
        loader = RecordDecoder()
        for checked in found.partitions:
            if checked.damages:
                preview.missing_partitions.append(checked.partition)
            add_groups_to_preview(read_shard(fs, checked, loader).shard.groups.values(), preview)
    except (StorageError, OSError) as error:
        raise CommandError(str(error)) from error
    return preview


def _print(found: "ExpiryPreview", within: str) -> None:
    from coordinator.cli import render
    from coordinator.cli.texts import format_count

    if found.rows:
        rows = sorted(found.rows, key=lambda row: (row.first_ms, row.group, row.topic))
        render.print_table(
            ["GROUP", "STATE", "TOPIC", "OFFSETS", "FIRST EXPIRES", "LAST EXPIRES"],
            [
                (row.group, row.state, row.topic, row.offsets, _time(row.first_ms), _time(row.last_ms))
                for row in rows
            ],
        )
        sys.stdout.write("\n")
    if found.unlisted_rows:
        sys.stdout.write(f"and {found.unlisted_rows} more groups and topics\n")
    if found.missing_partitions:
        missing = ", ".join(map(str, sorted(found.missing_partitions)))
        typer.echo(
            f"the result is incomplete for partitions {missing}: they are loading, or damaged", err=True
        )
    sys.stdout.write(
        f"{format_count(found.offsets, 'offset')} in {format_count(found.groups, 'group')} will expire within {within},"
        f" {found.due} of them at the next check; {format_count(found.finished_groups, 'group')} will have "
        "none left, and will be deleted, too\n"
    )


def _time(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"
