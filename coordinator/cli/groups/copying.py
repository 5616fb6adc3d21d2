# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups copy`."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import CommandError, exit_on_errors
from coordinator.cli.options import ClusterOptions, Execute, Force, Json, Topics, parse_addresses


@expand_dataclass_parameters
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The group whose offsets are copied.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The group that gets them; it need not exist.")],
    topic: Topics = None,
    to_bootstrap: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,...", help="Nodes of the cluster of TO. [default: the same cluster]"),
    ] = None,
    to_command_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Client properties for the cluster of TO.")
    ] = None,
    execute: Execute = False,
    force: Force = False,
    *,
    at: ClusterOptions,
    json: Json = False,
) -> None:
    """Set the offsets of a group to those of another group.

    The groups may be on different clusters. Offsets of TO in other partitions stay. Exit code 1: an offset was not
    set.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import group_offset_requests
        from coordinator.cli.cluster.client import get_answer_or_raise
        from coordinator.cli.groups import changes
        from coordinator.cli.resets.wanted_partitions import is_wanted, parse_topics

        wanted = parse_topics(topic) if topic else None
        with at.connect() as client:
            rows = get_answer_or_raise(
                group_offset_requests.fetch_committed_offsets(client, [source])[source],
                f"reading the offsets of group {source}",
            )
        chosen = [row for row in rows if wanted is None or is_wanted(row.place, wanted)]
        if not chosen:
            raise CommandError(f"group {source} has no such offsets")
        there = at
        if to_bootstrap is not None:
            parse_addresses(to_bootstrap, "--to-bootstrap")
            there = ClusterOptions(to_bootstrap, to_command_config, at.timeout)
            chosen = [
                msgspec.structs.replace(row, leader_epoch=-1) for row in chosen
            ]  # the epoch is of that cluster
        with there.connect() as client:
            current = changes.read_current(client, [target])
            planned = [changes.GroupOffsetsChange(target, current[target], chosen)]
            refused, failed = changes.commit_changes(client, planned, execute=execute, force=force)
        changes.report(planned, refused, failed, execute=execute, force=force, json=json)
