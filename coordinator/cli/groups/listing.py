# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups list`."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors
from coordinator.cli.options import ClusterOptions, Json, Watch

if TYPE_CHECKING:
    from coordinator.cli.cluster.model import GroupListing

STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
TYPES: Final = ("classic", "consumer", "share", "streams")


@expand_dataclass_parameters
def list_groups(
    pattern: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN", help="Only groups that match one of these: 'orders-*'."),
    ] = None,
    *,
    at: ClusterOptions,
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
    watch: Watch = None,
) -> None:
    """List all groups, or those that match a pattern.

    Exit code 1, after the list of the other groups, if partitions of groups have failed or are loading.
    """
    with exit_on_errors():
        from coordinator.cli import render
        from coordinator.cli.cluster import groups
        from coordinator.cli.groups import text
        from coordinator.cli.watch_option import show_repeatedly

        states, types = _choose(state, STATES, "state"), _choose(group_type, TYPES, "type")

        def show() -> None:
            with at.connect() as client:
                found = _like(groups.list_groups(client, states, types), pattern or ())
                missing = groups.find_unserved_partitions(client)
            if json:
                render.print_json(found)
            elif found or not missing:
                text.print_groups(found)
            if missing:
                raise CommandError(_missing(missing))

        show_repeatedly(show, watch)


def _like(found: "list[GroupListing]", patterns: "list[str] | tuple[()]") -> "list[GroupListing]":
    from fnmatch import fnmatchcase

    if not patterns:
        return found
    return [each for each in found if any(each.group == p or fnmatchcase(each.group, p) for p in patterns)]


def _missing(partitions: dict[int, str]) -> str:
    from coordinator.cli.texts import format_count

    each = ", ".join(f"{partition} ({error})" for partition, error in partitions.items())
    count = format_count(len(partitions), "partition")
    return f"the groups of {count} are missing, because they are not served now: {each}"


def _choose(given: list[str] | None, known: tuple[str, ...], what: str) -> list[str]:
    """Return the names as the protocol writes them; `given` may have any case, and commas between names."""
    by_lower = {name.lower(): name for name in known}
    chosen = []
    for name in ",".join(given or ()).split(","):
        if name.strip().lower() in by_lower:
            chosen.append(by_lower[name.strip().lower()])
        elif name.strip():
            raise CommandError(f"--{what} {name}: expected {', '.join(known)}", EXIT_USAGE)
    return chosen
