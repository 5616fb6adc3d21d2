# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper groups export`."""

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import CommandError, exit_on_errors
from coordinator.cli.options import ClusterOptions, GroupSelection, Json, Topics


@expand_dataclass_parameters
def export(
    which: GroupSelection,
    topic: Topics = None,
    *,
    at: ClusterOptions,
    json: Json = False,
) -> None:
    """Print the committed offsets of groups.

    The output is CSV that Kafka's tool reads (--from-file), or JSON. For a single group named by its id, a line has
    topic, partition and offset; otherwise the group comes first. JSON also has leader epochs and metadata. Exit code
    1: there is nothing to print.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import group_offset_requests
        from coordinator.cli.cluster.client import get_answer_or_raise
        from coordinator.cli.render import print_json
        from coordinator.cli.resets.offsets_file import GroupOffsets, to_csv
        from coordinator.cli.resets.wanted_partitions import is_wanted, parse_topics

        wanted = parse_topics(topic) if topic else None
        with at.connect() as client:
            committed = group_offset_requests.fetch_committed_offsets(client, which.resolve_group_ids(client))
        found = []
        for name, answer in committed.items():
            rows = get_answer_or_raise(answer, f"reading the offsets of group {name}")
            chosen = [row for row in rows if wanted is None or is_wanted(row.place, wanted)]
            if chosen:
                found.append(GroupOffsets(name, chosen))
        if not found:
            raise CommandError("nothing to print: these groups have committed no such offsets")
        if json:
            print_json(found)
        else:
            typer.echo(to_csv(found, named=not which.is_single_group_id), nl=False)
