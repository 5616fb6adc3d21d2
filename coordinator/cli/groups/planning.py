# SPDX-License-Identifier: Apache-2.0
"""Plans the offsets of each group from the flags of `groups reset`, with the facts that the strategy needs."""

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from coordinator.cli.cluster import partition_offsets
from coordinator.cli.cluster.client import Client
from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.cluster.topics import partition_counts
from coordinator.cli.errors import EXIT_USAGE, CommandError
from coordinator.cli.groups.changes import CurrentGroup, GroupOffsetsChange
from coordinator.cli.resets import times
from coordinator.cli.resets.offsets_file import ByGroup, get_group_offsets, read_offsets
from coordinator.cli.resets.strategy import (
    CannotPlan,
    Fact,
    Found,
    OffsetsByPartition,
    ShiftBy,
    Strategy,
    ToCurrent,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToOffset,
    ToTime,
    find_clamped_partitions,
    plan,
    required_facts,
)
from coordinator.cli.resets.wanted_partitions import TopicPartitionSelector, parse_topics, select
from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.topics import END, START

_SIMPLE: Mapping[str, Strategy] = {
    "--to-earliest": ToEarliest(),
    "--to-latest": ToLatest(),
    "--to-current": ToCurrent(),
}


class OffsetResetRequest(msgspec.Struct, frozen=True):
    """The request in the flags: a strategy for all groups, or a file with offsets for each; and which partitions.

    No topics and no file means the partitions that a group has committed offsets in.
    """

    strategy: Strategy | None
    path: Path
    file: ByGroup
    topics: list[TopicPartitionSelector]
    unchecked: bool


def parse_flags(
    flag: str, value: object, topics: Sequence[str] | None, *, all_topics: bool, unchecked: bool
) -> OffsetResetRequest:
    """Return the request in the strategy's flag and the other flags. Raises CommandError if they make no sense."""
    if isinstance(value, Path):
        if topics or all_topics:
            raise CommandError("--from-file: the file names the partitions; leave out --topic", EXIT_USAGE)
        return OffsetResetRequest(None, value, read_offsets(value), [], unchecked)
    if bool(topics) == all_topics:
        raise CommandError(f"expected {'only one of ' if topics else ''}--topic or --all-topics", EXIT_USAGE)
    return OffsetResetRequest(_strategy(flag, value), Path(), {}, parse_topics(topics or ()), unchecked)


def plan_changes(
    client: Client, asked: OffsetResetRequest, current: Mapping[str, CurrentGroup]
) -> list[GroupOffsetsChange]:
    """Return the offsets to set in each group. Raises CommandError if one is not known: then none is set."""
    strategies = _strategies(asked, list(current))
    places = _places(client, asked, strategies, current)
    facts = _facts(client, asked, strategies, {place for each in places.values() for place in each})
    changes = []
    for group, now in current.items():
        known = msgspec.structs.replace(facts, committed=now.offsets)
        try:
            offsets = plan(strategies[group], places[group], known, unchecked=asked.unchecked)
        except CannotPlan as error:
            raise CommandError(f"nothing was changed: group {group}: {error}") from None
        rows = [CommittedOffset(place.topic, place.partition, at) for place, at in offsets.items()]
        changes.append(
            GroupOffsetsChange(group, now, rows, find_clamped_partitions(strategies[group], offsets, known))
        )
    return changes


def _strategies(asked: OffsetResetRequest, groups: Sequence[str]) -> dict[str, Strategy]:
    if asked.strategy is not None:
        return dict.fromkeys(groups, asked.strategy)
    if None in asked.file and len(groups) > 1:
        raise CommandError(f"{asked.path} names no groups, so it can be used for one group only", EXIT_USAGE)
    rows = {group: get_group_offsets(asked.path, asked.file, group) for group in groups}
    return {group: ToGiven({row.place: row.offset for row in given}) for group, given in rows.items()}


def _strategy(flag: str, value: object) -> Strategy:
    if flag in _SIMPLE:
        return _SIMPLE[flag]
    if isinstance(value, int):
        return ToOffset(value) if flag == "--to-offset" else ShiftBy(value)
    assert isinstance(value, str), f"{flag} has no text"
    try:
        if flag == "--to-datetime":
            return ToTime(times.parse_datetime(value))
        return ToTime(time.time_ns() // 1_000_000 - times.parse_duration(value))
    except (ValueError, OverflowError):
        example = "2026-11-22T10:30:00.000" if flag == "--to-datetime" else "PT1H30M or 90m"
        raise CommandError(f"{flag} {value}: expected a value such as {example}", EXIT_USAGE) from None


def _places(
    client: Client,
    asked: OffsetResetRequest,
    strategies: Mapping[str, Strategy],
    current: Mapping[str, CurrentGroup],
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each group that are to be set."""
    if asked.topics:
        return dict.fromkeys(current, select(asked.topics, partition_counts(client)))
    return {
        group: sorted(given.offsets if isinstance(given, ToGiven) else current[group].committed)
        for group, given in strategies.items()
    }


def _facts(
    client: Client,
    asked: OffsetResetRequest,
    strategies: Mapping[str, Strategy],
    places: Iterable[TopicPartition],
) -> OffsetsByPartition:
    """Read the facts from the partitions' leaders, but not the committed offsets, which differ from group to group."""
    wanted = {
        fact for each in strategies.values() for fact in required_facts(each, unchecked=asked.unchecked)
    }
    found: dict[Fact, Mapping[TopicPartition, Found]] = {}
    for fact in wanted - {Fact.COMMITTED}:
        found[fact] = partition_offsets.fetch_offsets_at(client, places, _timestamp(fact, strategies))
    return OffsetsByPartition(
        starts=found.get(Fact.START, {}), ends=found.get(Fact.END, {}), at_time=found.get(Fact.AT_TIME, {})
    )


def _timestamp(fact: Fact, strategies: Mapping[str, Strategy]) -> int:
    if fact is Fact.START:
        return START
    if fact is Fact.END:
        return END
    (at_ms,) = {each.at_ms for each in strategies.values() if isinstance(each, ToTime)}
    return at_ms
