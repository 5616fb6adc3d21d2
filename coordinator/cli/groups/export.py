# SPDX-License-Identifier: Apache-2.0
"""`groupkeeper groups export`."""

import typer

from coordinator.cli.errors import CommandError, one_line_errors
from coordinator.cli.options import (
    DEFAULT_BOOTSTRAP,
    AllGroups,
    Bootstrap,
    CommandConfig,
    Groups,
    Json,
    Timeout,
    Topics,
    chosen_groups,
    connect,
)


def export(
    group: Groups = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    json: Json = False,
    timeout: Timeout = 15.0,
) -> None:
    """Print what groups have committed.

    As CSV that Kafka's tool reads (--from-file), or as JSON. Of one group that is named, a line has topic,
    partition and offset; of several, the group before them. JSON has leader epochs and metadata as well. Exit
    code 1: there is nothing to print.
    """
    with one_line_errors():
        from coordinator.cli.cluster import offsets
        from coordinator.cli.cluster.client import expect
        from coordinator.cli.cluster.groups import is_pattern
        from coordinator.cli.render import print_json
        from coordinator.cli.resets.offsets_file import GroupOffsets, to_csv
        from coordinator.cli.resets.scope import parse_topics, within

        wanted = parse_topics(topic) if topic else None
        with connect(bootstrap, command_config, timeout) as client:
            committed = offsets.committed(client, chosen_groups(client, group, all_groups))
        found = []
        for name, answer in committed.items():
            rows = expect(answer, f"reading the offsets of group {name}")
            chosen = [row for row in rows if wanted is None or within(row.place, wanted)]
            if chosen:
                found.append(GroupOffsets(name, chosen))
        if not found:
            raise CommandError("nothing to print: these groups have committed no such offsets")
        if json:
            print_json(found)
        else:
            is_one = group is not None and len(group) == 1 and not is_pattern(group[0])
            typer.echo(to_csv(found, named=not is_one), nl=False)
