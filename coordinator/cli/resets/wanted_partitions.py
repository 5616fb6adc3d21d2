# SPDX-License-Identifier: Apache-2.0
"""The partitions that a command works on: TOPIC[:PARTITIONS], as Kafka's tools write it, with patterns and ranges."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from coordinator.cli.errors import EXIT_USAGE, CommandError
from coordinator.cluster_requests.model import TopicPartition

_PARTITIONS: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
PARTITIONS_MAX: Final = 1_000_000
"""The maximum number of partitions in one range, so that a typing error does not use up the memory."""


class TopicPartitionSelector(NamedTuple):
    """A topic or a pattern of topics, and the numbers of the wanted partitions; None for all of them."""

    pattern: str
    partitions: frozenset[int] | None


def parse_topics(texts: Iterable[str]) -> list[TopicPartitionSelector]:
    """Parse the values of --topic flags. Raises CommandError for one that makes no sense."""
    return [_parse(text) for text in texts]


def _parse(text: str) -> TopicPartitionSelector:
    pattern, colon, numbers = text.partition(":")
    if not pattern or (colon and not numbers):
        raise _mistake(text)
    if not colon:
        return TopicPartitionSelector(pattern, None)
    partitions: set[int] = set()
    for part in numbers.split(","):
        match = _PARTITIONS.fullmatch(part.strip())
        if match is None:
            raise _mistake(text)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= PARTITIONS_MAX:
            raise _mistake(text)
        partitions.update(range(first, last + 1))
    return TopicPartitionSelector(pattern, frozenset(partitions))


def _mistake(text: str) -> CommandError:
    return CommandError(
        f"--topic {text}: expected TOPIC or TOPIC:PARTITIONS, such as orders:0,2,4-7", EXIT_USAGE
    )


def is_wanted(place: TopicPartition, wanted: Iterable[TopicPartitionSelector]) -> bool:
    """Return whether a partition is one of those wanted."""
    return any(
        _is_like(place.topic, each.pattern)
        and (each.partitions is None or place.partition in each.partitions)
        for each in wanted
    )


def select(wanted: Sequence[TopicPartitionSelector], topics: Mapping[str, int]) -> list[TopicPartition]:
    """Return the wanted partitions in order; `topics` has the number of partitions of each topic.

    Raises CommandError if a topic or a partition that is named does not exist.
    """
    found: set[TopicPartition] = set()
    for each in wanted:
        names = [name for name in topics if _is_like(name, each.pattern)]
        if not names:
            raise CommandError(f"there is no topic {each.pattern}")
        for name in names:
            missing = [number for number in each.partitions or () if number >= topics[name]]
            if missing:
                raise CommandError(
                    f"topic {name} has {topics[name]} partitions, but no partition {min(missing)}"
                )
            numbers = range(topics[name]) if each.partitions is None else each.partitions
            found.update(TopicPartition(name, number) for number in numbers)
    return sorted(found)


def _is_like(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)
