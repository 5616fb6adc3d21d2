# SPDX-License-Identifier: Apache-2.0
"""The command `groupkeeper import --from-bootstrap`, which takes over topics and offsets of a running cluster."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from coordinator.cli.cluster import group_offset_requests, groups, topics
from coordinator.cli.cluster.client import Client, RefusedAnswer, get_answer_or_raise
from coordinator.cli.cluster.error_texts import describe_refused_offsets
from coordinator.cli.cluster.model import CommittedOffset, GroupListing
from coordinator.cli.errors import CommandError, print_line
from coordinator.cli.groups.changes import read_current
from coordinator.cli.import_plan import ImportPlan, plan_cluster_import
from coordinator.cli.options import NOTHING_DONE, make_client, parse_addresses
from coordinator.cli.progress import ProgressBar
from coordinator.cli.texts import format_count, format_first_few
from coordinator.cluster_requests.retrying import RetryLater
from protocol.errors import ErrorCode

_WITH_OFFSETS: Final = ("", "classic", "consumer")
"""The types of groups whose offsets are all of their data; share and streams groups have more."""


class ImportOptions(msgspec.Struct, frozen=True):
    """The source and target of an import, and the groups and topics to take over."""

    from_bootstrap: str
    from_config: Path | None
    bootstrap: str
    command_config: Path | None
    groups: Sequence[str]
    topics: Sequence[str]
    timeout_s: float


class SourceContents(msgspec.Struct, frozen=True):
    """The topics and offsets of the source.

    `active` are the groups with members, `left_out` the groups of types that are not imported.
    """

    topics: dict[str, int]
    offsets: dict[str, list[CommittedOffset]]
    active: list[str]
    left_out: list[str]


def import_from_running_cluster(wanted: ImportOptions, *, execute: bool, overwrite: bool) -> None:
    """Create the topics, commit the offsets and report both. Raises CommandError if something was not done."""
    _check(wanted)
    with make_client(
        wanted.from_bootstrap, wanted.from_config, wanted.timeout_s, "--from-bootstrap"
    ) as client:
        source = _read(client, wanted)
    with make_client(wanted.bootstrap, wanted.command_config, wanted.timeout_s) as client:
        there = read_current(client, list(source.offsets))
        counts = topics.partition_counts(client)
        plan = plan_cluster_import(source.topics, counts, source.offsets, there, overwrite=overwrite)
        failed = _carry_out(client, plan) if execute else []
    _print(plan, source, execute=execute)
    failed += [f"group {group} has members here: stop them first" for group in plan.has_members]
    failed += [
        f"group {group} has different offsets here, in {format_first_few(places)}: --force overwrites them"
        for group, places in plan.differs.items()
    ]
    if failed:
        raise CommandError("; ".join(failed))


def _check(wanted: ImportOptions) -> None:
    same = set(parse_addresses(wanted.from_bootstrap, "--from-bootstrap")) & set(
        parse_addresses(wanted.bootstrap)
    )
    if same:
        raise CommandError(f"{same.pop()} is in --from-bootstrap and in --bootstrap: it cannot be both")


def _read(client: Client, wanted: ImportOptions) -> SourceContents:
    listed = [each for each in groups.list_groups(client) if _is_like(each.group, wanted.groups)]
    missing = groups.find_unserved_partitions(client)
    if missing:
        raise CommandError(
            f"{wanted.from_bootstrap}: groups of partitions {sorted(missing)} cannot be read now"
        )
    chosen = [each.group for each in listed if each.type in _WITH_OFFSETS]
    committed = {
        group: get_answer_or_raise(answer, f"reading the offsets of group {group}")
        for group, answer in group_offset_requests.fetch_committed_offsets(client, chosen).items()
    }
    return SourceContents(
        {
            each.topic: each.partitions
            for each in topics.list_topics(client)
            if not each.is_internal and _is_like(each.topic, wanted.topics)
        },
        {
            group: [row for row in rows if _is_like(row.topic, wanted.topics)]
            for group, rows in committed.items()
        },
        _active(listed, chosen),
        [each.group for each in listed if each.type not in _WITH_OFFSETS],
    )


def _active(listed: Sequence[GroupListing], chosen: Sequence[str]) -> list[str]:
    states = {each.group: each.state for each in listed}
    return [group for group in chosen if states[group] not in ("Empty", "Dead")]


def _is_like(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _carry_out(client: Client, plan: ImportPlan) -> list[str]:
    """Carry out the plan; return a line for each refusal."""
    failed: list[str] = []
    if plan.create:
        wanted = [topics.NewTopic(name, count) for name, count in plan.create.items()]
        failed += _refused("creating topic", topics.create(client, wanted))
    if plan.grow:
        failed += _refused("adding partitions to topic", topics.set_partitions(client, plan.grow))
    _await_partitions(client, {**plan.create, **plan.grow})
    for group in ProgressBar("committing offsets of groups")(plan.offsets):
        rows = plan.offsets[group]
        try:
            refused = group_offset_requests.commit(client, group, rows)
        except CommandError as error:
            failed.append(str(error))
            continue
        failed += [describe_refused_offsets(group, refused)] if refused else []
    return failed


def _await_partitions(client: Client, counts: Mapping[str, int]) -> None:
    """Wait until the nodes know the topics: a broker learns of them after the controller has made them."""

    def attempt() -> None:
        known = topics.partition_counts(client)
        for name, count in counts.items():
            if known.get(name, 0) < count:
                raise RetryLater(f"waiting for topic {name}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    client.call_with_retries(attempt)


def _refused(doing: str, answers: Mapping[str, RefusedAnswer | None]) -> list[str]:
    return [f"{doing} {name}: {answer}" for name, answer in answers.items() if answer is not None]


def _print(plan: ImportPlan, source: SourceContents, *, execute: bool) -> None:
    would = "" if execute else "would be "
    count = sum(map(len, plan.offsets.values()))
    done = [
        f"{would}created: topic {name} with {format_count(number, 'partition')}"
        for name, number in plan.create.items()
    ]
    done += [
        f"{would}grown: topic {name} to {format_count(number, 'partition')}"
        for name, number in plan.grow.items()
    ]
    done += [
        f"{would}set: group {group}, {format_count(len(rows), 'offset')}"
        for group, rows in plan.offsets.items()
    ]
    done.append(
        f"{format_count(len(plan.create), 'topic')} {would}created, {len(plan.grow)} grown; "
        f"{format_count(count, 'offset')} of {format_count(len(plan.offsets), 'group')} {would}set; "
        f"already the same: {plan.same}"
    )
    notes = [f"topic {name} has more partitions here, and keeps them" for name in plan.larger]
    notes += [
        f"left out of group {group}, because these partitions do not exist: {format_first_few(places)}"
        for group, places in plan.homeless.items()
    ]
    notes += [
        f"left out: group {group}, of a type that stores more than offsets" for group in source.left_out
    ]
    notes += [
        f"group {group} has members at the source: what they commit from now on is not taken over"
        for group in source.active
    ]
    for line in done:
        print_line(line)
    if not execute:
        notes.append(NOTHING_DONE)
    for line in notes:
        print_line(line, err=True)
