# SPDX-License-Identifier: Apache-2.0
"""The commands `groupkeeper topics create`, `alter`, `add-partitions` and `delete`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from coordinator.cli.dataclass_flags import expand_dataclass_parameters
from coordinator.cli.errors import EXIT_USAGE, CommandError, exit_on_errors, print_line
from coordinator.cli.options import NOTHING_DONE, ClusterOptions, Execute, Json
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


class ChangedConfig(msgspec.Struct, frozen=True):
    """A setting of a topic in the JSON of `topics alter`; a value is None where the default applies."""

    topic: str
    name: str
    before: str | None
    value: str | None


@expand_dataclass_parameters
def alter(
    topic: Names,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting to set; repeatable.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A setting to give its default again; repeatable."),
    ] = None,
    execute: Execute = False,
    *,
    at: ClusterOptions,
    json: Json = False,
) -> None:
    """Change settings of topics.

    The cluster checks the settings, with and without --execute. Exit code 1 if it refused those of a topic.
    """
    with exit_on_errors():
        from coordinator.cli.cluster import topics

        changes = _changes(config or [], delete_config or [])
        names = list(dict.fromkeys(topic))
        with at.connect() as client:
            before = topics.fetch_configs(client, names)
            answers = topics.alter_configs(client, names, changes, validate_only=not execute)
        _print_changes(
            [
                ChangedConfig(name, key, before.get(name, {}).get(key), value)
                for name in names
                if answers[name] is None
                for key, value in changes.items()
            ],
            json=json,
        )
        if not execute:
            print_line(NOTHING_DONE, err=True)
        _raise_if_refused("changing settings of", answers)


def _changes(to_set: list[str], to_delete: list[str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {**_configs(to_set), **dict.fromkeys(to_delete)}
    if not changes:
        raise CommandError("expected --config NAME=VALUE or --delete-config NAME", EXIT_USAGE)
    if len(changes) < len(to_set) + len(to_delete):
        raise CommandError("expected each setting once in --config and --delete-config", EXIT_USAGE)
    return changes


def _print_changes(changed: Sequence[ChangedConfig], *, json: bool) -> None:
    from coordinator.cli.render import print_json, print_table

    if json:
        print_json(changed)
    elif changed:
        rows = [(each.topic, each.name, each.before, each.value) for each in changed]
        print_table(["TOPIC", "SETTING", "BEFORE", "VALUE"], rows)


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
    _raise_if_refused(doing, answers, missing)


def _raise_if_refused(doing: str, answers: "Answers", missing: Sequence[str] = ()) -> None:
    refused = list(missing)
    refused += [f"{doing} topic {name}: {answer}" for name, answer in answers.items() if answer is not None]
    if refused:
        raise CommandError("; ".join(refused))
