# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper topics list` and `describe`."""

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import ClusterOptions, Json, Watch

if TYPE_CHECKING:
    from coordinator.cli.cluster.topics import TopicDetails

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="TOPIC", help="Topic names, or patterns: 'orders-*'."),
]


@expand_dataclass_parameters
def list_topics(
    topic: Names = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also list internal topics, such as __consumer_offsets.")
    ] = False,
    *,
    at: ClusterOptions,
    json: Json = False,
    watch: Watch = None,
) -> None:
    """List topics, with their numbers of partitions."""
    with exit_on_errors():
        from coordinator.cli.cluster import topics
        from coordinator.cli.render import print_json, print_table
        from coordinator.cli.watch_option import show_repeatedly

        def show() -> None:
            with at.connect() as client:
                found = [
                    each
                    for each in topics.list_topics(client)
                    if (internal or not each.is_internal) and _is_like(each.topic, topic)
                ]
            if json:
                print_json(found)
            elif found:
                print_table(["TOPIC", "PARTITIONS"], [(each.topic, each.partitions) for each in found])
            else:
                print_line("no topics", err=True)

        show_repeatedly(show, watch)


def _is_like(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


@expand_dataclass_parameters
def describe(
    topic: Names = None,
    *,
    at: ClusterOptions,
    json: Json = False,
    watch: Watch = None,
) -> None:
    """Describe topics and their partitions.

    Prints ids, settings other than defaults, and each partition with leader, replicas, start and end. Exit code 1 if
    a topic does not exist, after the others have been described.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import topics
        from coordinator.cli.render import print_json
        from coordinator.cli.watch_option import show_repeatedly

        if not topic:
            raise CommandError("expected topics, or patterns", EXIT_USAGE)

        def show() -> None:
            with at.connect() as client:
                chosen = topics.find_matching_topics(client, topic or ())
                found = topics.describe(client, sorted({name for each in chosen.values() for name in each}))
            if json:
                print_json(found)
            elif found:
                _print(found)
            missing = [pattern for pattern, names in chosen.items() if not names]
            if missing:
                raise CommandError(f"there is no topic {', '.join(missing)}")

        show_repeatedly(show, watch)


def _print(found: "Sequence[TopicDetails]") -> None:
    from coordinator.cli.render import print_table

    topics = [
        (
            each.topic,
            len(each.partitions),
            max((len(p.replicas) for p in each.partitions), default=0),
            each.topic_id,
            ", ".join(f"{name}={value}" for name, value in sorted(each.configs.items())),
        )
        for each in found
    ]
    print_table(["TOPIC", "PARTITIONS", "REPLICAS", "ID", "SETTINGS"], topics)
    sys.stdout.write("\n")
    partitions = [
        (
            each.topic,
            p.partition,
            p.leader if p.leader >= 0 else None,
            ",".join(map(str, p.replicas)),
            ",".join(map(str, p.in_sync)),
            p.start,
            p.end,
        )
        for each in found
        for p in each.partitions
    ]
    print_table(["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END"], partitions)
