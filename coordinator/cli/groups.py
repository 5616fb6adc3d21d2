# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups list`, `describe`, `set-offsets` and `expiring`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator.cli.errors import EXIT_USAGE, CommandError, one_line_errors
from coordinator.cli.expiring import expiring
from coordinator.config.values import Address
from protocol.errors import ErrorCode

STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "Dead",
)
TYPES: Final = ("classic", "consumer", "share", "streams")

app = typer.Typer(
    help="Look at groups and set their offsets, on any Kafka that --bootstrap names.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("expiring")(expiring)

Bootstrap = Annotated[str, typer.Option(metavar="HOST:PORT", help="A node of the cluster to ask.")]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for answers in all.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command("list")
def list_groups(
    bootstrap: Bootstrap = "127.0.0.1:9092",
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help=f"Only groups in this state; repeatable. {', '.join(STATES)}."),
    ] = None,
    group_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help=f"Only groups of this type; repeatable. {', '.join(TYPES)}."
        ),
    ] = None,
    json: Json = False,
    timeout: Timeout = 15.0,
) -> None:
    """List all groups.

    Exit code 1, after the list of those that can be had, where partitions of groups fail or load.
    """
    with one_line_errors():
        from coordinator.cli import render
        from coordinator.cli.client import Client

        states, types = _choose(state, STATES, "state"), _choose(group_type, TYPES, "type")
        with Client(_address(bootstrap), timeout) as client:
            found = client.list_groups(states, types)
            missing = client.missing_partitions()
        if json:
            render.print_json(found)
        elif found or not missing:
            render.print_groups(found)
        if missing:
            raise CommandError(_missing(missing))


@app.command("describe")
def describe_group(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.")],
    bootstrap: Bootstrap = "127.0.0.1:9092",
    members: Annotated[
        bool, typer.Option("--members", help="Only the members and what they are assigned.")
    ] = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Only the committed offsets and who reads on.")
    ] = False,
    state: Annotated[bool, typer.Option("--state", help="Only the state.")] = False,
    json: Json = False,
    timeout: Timeout = 15.0,
) -> None:
    """Describe one group: its state, its members and its committed offsets."""
    with one_line_errors():
        from coordinator.cli import model, render
        from coordinator.cli.client import Client

        everything = not (members or offsets or state)
        with Client(_address(bootstrap), timeout) as client:
            details = client.describe_group(group)
            committed = client.committed_offsets(group) if offsets or everything else None
        description = model.Description(
            group,
            state=model.state_view(details) if state or everything else None,
            members=details.members if members or everything else None,
            offsets=model.offset_views(details, committed) if committed is not None else None,
        )
        if json:
            render.print_json(description)
        else:
            render.print_description(description)


@app.command("set-offsets")
def set_offsets(
    group: Annotated[
        str, typer.Argument(metavar="GROUP", help="The group's id; it may have no members, or not exist.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: a topic, a partition and an offset in each line.")
    ],
    bootstrap: Bootstrap = "127.0.0.1:9092",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be set, and what is there now.")
    ] = False,
    timeout: Timeout = 15.0,
) -> None:
    """Set a group's offsets to exactly what a file says, forward or backward.

    The file is as `kafka-consumer-groups.sh --reset-offsets --export` writes it. Where the ends of partitions are not
    known, Kafka's own tool refuses; this command does not ask for them.
    """
    with one_line_errors():
        from coordinator.cli import render
        from coordinator.cli.client import Client
        from coordinator.cli.offsets_file import read_offsets

        offsets = read_offsets(file)
        with Client(_address(bootstrap), timeout) as client:
            before = {(each.topic, each.partition): each.offset for each in client.committed_offsets(group)}
            refused = {} if dry_run else client.set_offsets(group, offsets)
        render.print_set_offsets(
            {at: (before.get(at), offset) for at, offset in offsets.items() if at not in refused}
        )
        if refused:
            raise CommandError(_refused(refused))


def _refused(partitions: dict[tuple[str, int], str]) -> str:
    each = ", ".join(f"{topic}-{partition} ({error})" for (topic, partition), error in partitions.items())
    has_members = ErrorCode.UNKNOWN_MEMBER_ID.name in partitions.values()
    return f"not set: {each}{': the group has members; stop them first' if has_members else ''}"


def _missing(partitions: dict[int, str]) -> str:
    each = ", ".join(f"{partition} ({error})" for partition, error in partitions.items())
    return f"the groups of {len(partitions)} partitions are missing, which are not served now: {each}"


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError:
        raise CommandError(f"--bootstrap {text}: expected HOST:PORT", EXIT_USAGE) from None


def _choose(given: list[str] | None, known: tuple[str, ...], what: str) -> list[str]:
    """The names as the protocol writes them; a name may be given in any case, and several with commas."""
    by_lower = {name.lower(): name for name in known}
    chosen = []
    for name in ",".join(given or ()).split(","):
        if name.strip().lower() in by_lower:
            chosen.append(by_lower[name.strip().lower()])
        elif name.strip():
            raise CommandError(f"--{what} {name}: expected {', '.join(known)}", EXIT_USAGE)
    return chosen
