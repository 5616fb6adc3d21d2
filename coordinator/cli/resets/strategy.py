# SPDX-License-Identifier: Apache-2.0
"""The offset that a reset sets in each partition, as kafka-consumer-groups.sh --reset-offsets decides it; pure.

An offset that is requested by number is kept between the start and the end of its partition. If one of the facts that a
strategy needs is missing, nothing is planned for the group at all.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from coordinator.cluster_requests.model import TopicPartition
from protocol.errors import ErrorCode

Found = int | str
"""An offset, or the name of the error in its place."""


NO_END: Final = (
    "a node of Groupkeeper knows the end of a partition from the topic's end group: set groupkeeper.end.group of the "
    "topic, or give the offsets by number, with --unchecked"
)
NO_TIME: Final = (
    "a node of Groupkeeper does not know when an offset was reached: give the offsets by number, with --to-offset, "
    "--shift-by or --from-file"
)
UNKNOWN_TO_NODES: Final = (None, -1, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT.name)
"""The answers of a node of Groupkeeper that does not know an offset (the setting `end.unknown`)."""


class CannotPlan(Exception):
    """A fact is missing; the message names the partition, and what can be done if a node of Groupkeeper lacks it."""


class Fact(Enum):
    """A kind of fact that a strategy needs."""

    COMMITTED = auto()
    START = auto()
    END = auto()
    AT_TIME = auto()


class OffsetsByPartition(msgspec.Struct, frozen=True):
    """The known facts about partitions; -1 in `at_time` means that there is no record since that time."""

    committed: Mapping[TopicPartition, int] = {}
    starts: Mapping[TopicPartition, Found] = {}
    ends: Mapping[TopicPartition, Found] = {}
    at_time: Mapping[TopicPartition, Found] = {}


class ToEarliest(msgspec.Struct, frozen=True):
    """The start of each partition."""


class ToLatest(msgspec.Struct, frozen=True):
    """The end of each partition."""


class ToCurrent(msgspec.Struct, frozen=True):
    """The committed offset, or the end if there is none."""


class ToOffset(msgspec.Struct, frozen=True):
    """The same offset in every partition."""

    offset: int


class ShiftBy(msgspec.Struct, frozen=True):
    """The committed offset plus `by`, which is less than 0 to go back."""

    by: int


class ToTime(msgspec.Struct, frozen=True):
    """The first record since a time in ms, or the end if there is none."""

    at_ms: int


class ToGiven(msgspec.Struct, frozen=True):
    """The offset that `offsets` contains for each partition."""

    offsets: Mapping[TopicPartition, int]


Strategy = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ToGiven


def required_facts(strategy: Strategy, *, unchecked: bool) -> frozenset[Fact]:
    """Return the facts that `plan` may use; with `unchecked`, offsets by number need neither start nor end."""
    bounds = frozenset() if unchecked else frozenset({Fact.START, Fact.END})
    match strategy:
        case ToEarliest():
            return frozenset({Fact.START})
        case ToLatest():
            return frozenset({Fact.END})
        case ToCurrent():
            return frozenset({Fact.COMMITTED, Fact.END})
        case ToTime():
            return frozenset({Fact.AT_TIME, Fact.END})
        case ShiftBy():
            return bounds | {Fact.COMMITTED}
        case ToOffset() | ToGiven():
            return bounds


def plan(
    strategy: Strategy,
    places: Iterable[TopicPartition],
    facts: OffsetsByPartition,
    *,
    unchecked: bool = False,
) -> dict[TopicPartition, int]:
    """Return the offset of each partition after the reset. Raises CannotPlan if one is not known."""
    return {place: _offset(strategy, place, facts, unchecked) for place in places}


def is_numeric_strategy(strategy: Strategy) -> bool:
    """Return whether the strategy gives offsets by number, which may lie beyond a partition's start and end."""
    return isinstance(strategy, ToOffset | ShiftBy | ToGiven)


def find_clamped_partitions(
    strategy: Strategy, planned: Mapping[TopicPartition, int], facts: OffsetsByPartition
) -> list[TopicPartition]:
    """Return the partitions that are set to their start or end, because the given number lies beyond it."""
    if not is_numeric_strategy(strategy):
        return []
    return [place for place, offset in planned.items() if offset != _given(strategy, place, facts)]


def _offset(strategy: Strategy, place: TopicPartition, facts: OffsetsByPartition, unchecked: bool) -> int:
    match strategy:
        case ToEarliest():
            return _start(place, facts)
        case ToLatest():
            return _end(place, facts)
        case ToCurrent():
            return facts.committed[place] if place in facts.committed else _end(place, facts)
        case ToTime():
            return _at_time(place, facts)
        case ShiftBy() | ToOffset() | ToGiven():
            wanted = _given(strategy, place, facts)
            return max(0, wanted) if unchecked else _between(wanted, place, facts)


def _given(strategy: Strategy, place: TopicPartition, facts: OffsetsByPartition) -> int:
    match strategy:
        case ShiftBy(by):
            if place not in facts.committed:
                raise CannotPlan(f"{place} cannot be shifted: it has no committed offset")
            return facts.committed[place] + by
        case ToOffset(offset):
            return offset
        case ToGiven(offsets):
            return offsets[place]
        case _:
            raise AssertionError(f"{strategy} gives no numbers")


def _between(wanted: int, place: TopicPartition, facts: OffsetsByPartition) -> int:
    return max(_start(place, facts), min(wanted, _end(place, facts)))


def _start(place: TopicPartition, facts: OffsetsByPartition) -> int:
    return _known(facts.starts.get(place), f"the start of {place}", NO_END)


def _end(place: TopicPartition, facts: OffsetsByPartition) -> int:
    return _known(facts.ends.get(place), f"the end of {place}", NO_END)


def _at_time(place: TopicPartition, facts: OffsetsByPartition) -> int:
    found = facts.at_time.get(place)
    return (
        _end(place, facts) if found == -1 else _known(found, f"the offset of {place} at that time", NO_TIME)
    )


def _known(found: Found | None, what: str, advice: str) -> int:
    if isinstance(found, int) and found >= 0:
        return found
    raise CannotPlan(f"{what} is not known{f': {advice}' if found in UNKNOWN_TO_NODES else f' ({found})'}")
