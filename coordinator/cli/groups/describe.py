# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups describe`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import CommandError, exit_on_errors, print_error
from coordinator.cli.options import ClusterOptions, GroupSelection, Json, Watch

if TYPE_CHECKING:
    from coordinator.cli.cluster.client import Client
    from coordinator.cli.cluster.model import CommittedOffset, GroupDescription, GroupDetails
    from coordinator.cluster_requests.model import TopicPartition


@dataclass(frozen=True)
class PartsToDescribe:
    """The wanted parts of a description: without a flag all of them, but for the lag by topic."""

    members: Annotated[bool, typer.Option("--members", help="Only the members and their assignments.")] = (
        False
    )
    offsets: Annotated[
        bool,
        typer.Option(
            "--offsets", help="Only committed offsets, with lag and the member that has each partition."
        ),
    ] = False
    state: Annotated[bool, typer.Option("--state", help="Only the state.")] = False
    topics: Annotated[bool, typer.Option("--topics", help="Only the total lag of each topic.")] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Changes nothing: all details are shown anyway.")
    ] = False

    def or_all(self) -> "PartsToDescribe":
        """Return these parts, or the state, the members and the offsets if no part is wanted."""
        if self.members or self.offsets or self.state or self.topics:
            return self
        return PartsToDescribe(members=True, offsets=True, state=True)

    @property
    def need_offsets(self) -> bool:
        """True if the committed offsets have to be read."""
        return self.offsets or self.topics


@expand_dataclass_parameters
def describe(
    which: GroupSelection,
    *,
    at: ClusterOptions,
    wanted: PartsToDescribe,
    json: Json = False,
    watch: Watch = None,
) -> None:
    """Describe groups: state, members, offsets and lag.

    Prints the state, the members with their assignments, the committed offsets and the lag, or only some of these. Exit
    code 1 if a group does not exist, after the others have been described.
    """
    with exit_on_errors():
        from coordinator.cli import render
        from coordinator.cli.groups import text
        from coordinator.cli.watch_option import show_repeatedly

        def show() -> None:
            with at.connect() as client:
                groups = which.resolve_group_ids(client)
                found, failed = fetch_descriptions(client, groups, wanted.or_all())
            if json:
                render.print_json(found)
            else:
                text.print_descriptions(found)
            if failed:
                raise CommandError("; ".join(failed))

        show_repeatedly(show, watch)


def fetch_descriptions(
    client: "Client", groups: Sequence[str], parts: PartsToDescribe
) -> "tuple[list[GroupDescription], list[str]]":
    """Return the descriptions of these groups, and a line for each that cannot be described."""
    from coordinator.cli.cluster import group_offset_requests
    from coordinator.cli.cluster import groups as asking
    from coordinator.cli.cluster.client import RefusedAnswer
    from coordinator.cli.cluster.model import list_group_partitions

    found: dict[str, GroupDetails] = {}
    failed = []
    for group, answer in asking.describe(client, groups).items():
        if not isinstance(answer, RefusedAnswer):
            found[group] = answer
        elif answer is asking.NOT_FOUND:
            failed.append(f"group {group} not found")
        else:
            failed.append(f"describing group {group}: {answer}")
    committed: dict[str, list[CommittedOffset]] = {}
    if parts.need_offsets:
        for group, offered in group_offset_requests.fetch_committed_offsets(client, list(found)).items():
            if isinstance(offered, RefusedAnswer):
                failed.append(f"reading the offsets of group {group}: {offered}")
            else:
                committed[group] = offered
    places = {
        place for group, rows in committed.items() for place in list_group_partitions(found[group], rows)
    }
    ends = fetch_known_ends(client, places)
    return [_view(details, committed.get(group), ends, parts) for group, details in found.items()], failed


def fetch_known_ends(client: "Client", places: "set[TopicPartition]") -> "dict[TopicPartition, int]":
    """Return the known end offsets of the partitions; if the request fails, print the error and return none."""
    from coordinator.cli.cluster import partition_offsets
    from coordinator.cluster_requests.topics import END

    try:
        return partition_offsets.select_known_offsets(
            partition_offsets.fetch_offsets_at(client, sorted(places), END)
        )
    except CommandError as error:
        print_error(f"no lag: {error}")
        return {}


def _view(
    details: "GroupDetails",
    committed: "list[CommittedOffset] | None",
    ends: "dict[TopicPartition, int]",
    parts: PartsToDescribe,
) -> "GroupDescription":
    from coordinator.cli.cluster import model

    offsets = model.offset_views(details, committed, ends) if committed is not None else None
    return model.GroupDescription(
        details.group,
        state=model.make_group_view(details, offsets or ()) if parts.state else None,
        members=details.members if parts.members else None,
        offsets=offsets if parts.offsets else None,
        topics=model.sum_lag_by_topic(offsets) if parts.topics and offsets is not None else None,
    )
