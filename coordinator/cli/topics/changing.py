# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper topics create`, `add-partitions` and `delete`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, ClusterOptions, Execute
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.cli.cluster.topics import Answers

Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="Topic names.")]


@expand_dataclass_parameters
def create(
    topic: Names,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of partitions. [default: the cluster's]")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of replicas. [default: the cluster's]")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the topic; repeatable.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do not fail if a topic already exists.")
    ] = False,
    *,
    at: ClusterOptions,
) -> None:
    """Create topics, without a dry run. Exit code 1 if one was refused."""
    with exit_on_errors():
        from coordinator.cli.cluster import topics

        configs = _configs(config or [])
        wanted = [
            topics.NewTopic(name, partitions or -1, replication_factor or -1, configs) for name in topic
        ]
        with at.connect() as client:
            answers = topics.create(client, wanted)
        if if_not_exists:
            there = [
                n for n, a in answers.items() if a is not None and a.code == ErrorCode.TOPIC_ALREADY_EXISTS
            ]
            answers = {name: answer for name, answer in answers.items() if name not in there}
        _report("created", "creating", answers)


def _configs(given: list[str]) -> dict[str, str]:
    configs = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise CommandError(f"--config {each}: expected NAME=VALUE", EXIT_USAGE)
        configs[name] = value
    return configs


@expand_dataclass_parameters
def add_partitions(
    topic: Names,
    partitions: Annotated[
        int, typer.Option(metavar="N", min=1, help="The new number of partitions, in all.")
    ],
    *,
    at: ClusterOptions,
) -> None:
    """Give topics more partitions, without a dry run.

    They can never be removed again. Exit code 1 if one was refused.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import topics

        with at.connect() as client:
            answers = topics.set_partitions(client, dict.fromkeys(topic, partitions))
        _report(f"has {partitions} partitions", "adding partitions to", answers)


@expand_dataclass_parameters
def delete(
    topic: Annotated[list[str], typer.Argument(metavar="TOPIC", help="Topic names, or patterns.")],
    execute: Execute = False,
    *,
    at: ClusterOptions,
) -> None:
    """Delete topics, and the offsets of groups in them.

    Exit code 1 if a topic does not exist, or was refused.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import topics

        with at.connect() as client:
            chosen = topics.find_matching_topics(client, topic)
            names = sorted({name for each in chosen.values() for name in each})
            answers: Answers = dict.fromkeys(names)
            if execute and names:
                answers = topics.delete(client, names)
        missing = [f"there is no topic {pattern}" for pattern, found in chosen.items() if not found]
        if execute:
            _report("deleted", "deleting", answers, missing)
        else:
            _report("would be deleted", "deleting", answers, missing, NOTHING_DONE)


def _report(
    done: str, doing: str, answers: "Answers", missing: Sequence[str] = (), note: str | None = None
) -> None:
    """Print the changed topics, with a note below them. Raises CommandError for refused and missing ones."""
    for name in sorted(name for name, answer in answers.items() if answer is None):
        print_line(f"{done}: {name}")
    if note is not None and answers:
        print_line(note, err=True)
    refused = list(missing)
    refused += [f"{doing} topic {name}: {answer}" for name, answer in answers.items() if answer is not None]
    if refused:
        raise CommandError("; ".join(refused))
