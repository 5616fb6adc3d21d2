# SPDX-License-Identifier: Apache-2.0
"""The lag of groups behind the ends of their partitions, and since when. Pure: no I/O, no clock.

Lag is the end offset minus the committed offset. For a partition it is negative when the committed offset is beyond the
end, for example after the topic was deleted and created again; Kafka's tool shows the same. Sums count such a partition
as 0. There are two ends: the high watermark, and the last stable offset, which a reader with isolation level
read_committed does not go beyond. A group that keeps up with a busy topic is always a little behind, so *since when* is
not when its lag began, but when the end was seen that the group has not reached yet.
"""

import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from protocol.newtypes import GroupId

Detail = Literal["off", "group", "topic", "partition"]
"""The level of detail of the lag metrics (`metrics.lag`)."""
ROWS_MAX: Final = 10_000
"""The most groups, topics of groups and partitions of groups that are kept, each: those with the largest lag."""


OFFSETS_PER_STEP: Final = 200
"""The number of offsets that are handled in one step: some 500 microseconds."""


class PartitionEnd(NamedTuple):
    """The end of a partition: the high watermark, and the last stable offset."""

    high: int
    stable: int


Ends = Mapping[str, Mapping[int, PartitionEnd]]
"""The ends by topic and partition, without the partitions whose end is not known now."""
Committed = tuple[GroupId, Iterable[tuple[str, int, int]]]
"""A group with its committed offsets: topic, partition, offset."""


class GroupLag(NamedTuple):
    """The lag of one group: records behind the ends of all its partitions, and behind the stable ends.

    `since_ms` is when the oldest end was seen that it has not reached, in Unix milliseconds; 0 if there is none.
    """

    lag: int
    stable_lag: int
    since_ms: int
    group: GroupId


class TopicLag(NamedTuple):
    """The lag of a group in one topic: the sums over its partitions."""

    lag: int
    stable_lag: int
    offsets: int
    group: GroupId
    topic: str


class PartitionLag(NamedTuple):
    """The lag of a group in one partition; `lag` may be negative."""

    lag: int
    stable_lag: int
    offset: int
    end: int
    group: GroupId
    topic: str
    partition: int


@dataclass(slots=True)
class Lags:
    """The result of one measurement; each list has the rows with the largest lag, largest first."""

    groups: list[GroupLag] = field(default_factory=list)
    topics: list[TopicLag] = field(default_factory=list)
    partitions: list[PartitionLag] = field(default_factory=list)
    left_out: int = 0
    """Rows beyond ROWS_MAX of a kind, which are in no list."""
    unknown: int = 0
    """Committed offsets in partitions whose end is not known now; they count in no sum."""


Row = TypeVar("Row", GroupLag, TopicLag, PartitionLag)


class _NotReached(NamedTuple):
    end: int
    seen_ms: int


NotReached = dict[tuple[GroupId, str], dict[int, _NotReached]]
"""The ends by group and topic, then by partition: one dict of a million would move them all at once as it grows."""


class LagBook:
    """The lag of a node's groups, measured again and again; `newest` is the result of the last complete one."""

    def __init__(self, detail: Detail, rows_max: int = ROWS_MAX) -> None:
        """Keep rows of the level `detail`, up to `rows_max` of each kind."""
        self._detail = detail
        self._rows_max = rows_max
        self._not_reached: NotReached = {}
        self.newest = Lags()
        self.by_group: dict[GroupId, int] = {}
        """The lag of each group with a known one, of the same measurement."""

    def measure_in_steps(self, groups: Iterable[Committed], ends: Ends, now_ms: int) -> Iterator[None]:
        """Measure all groups at the moment `now_ms` (Unix milliseconds), and yield every OFFSETS_PER_STEP offsets."""
        measuring = _Measuring(self._detail, self._rows_max, ends, now_ms, self._not_reached)
        for group, offsets in groups:
            yield from measuring.add(group, offsets)
        before, self._not_reached = self._not_reached, measuring.not_reached
        self.newest = yield from measuring.found()
        earlier, self.by_group = self.by_group, measuring.by_group
        yield from empty_in_steps(before)
        while earlier:
            for _ in range(min(OFFSETS_PER_STEP, len(earlier))):
                earlier.popitem()
            yield


class _Measuring:
    def __init__(self, detail: Detail, rows_max: int, ends: Ends, now_ms: int, before: NotReached) -> None:
        self._detail = detail
        self._ends = ends
        self._now_ms = now_ms
        self._before = before
        self._groups: _Largest[GroupLag] = _Largest(rows_max)
        self._topics: _Largest[TopicLag] = _Largest(rows_max)
        self._partitions: _Largest[PartitionLag] = _Largest(rows_max)
        self._unknown = 0
        self.not_reached: NotReached = {}
        self.by_group: dict[GroupId, int] = {}

    def add(self, group: GroupId, offsets: Iterable[tuple[str, int, int]]) -> Iterator[None]:
        lag = stable_lag = since_ms = known = 0
        topics: dict[str, list[int]] = {}
        for number, (topic, partition, offset) in enumerate(offsets):
            if number % OFFSETS_PER_STEP == 0:
                yield
            end = self._ends.get(topic, _NOTHING).get(partition)
            if end is None:
                self._unknown += 1
                continue
            row = PartitionLag(
                end.high - offset,
                max(0, end.stable - offset),
                offset,
                end.high,
                group,
                topic,
                partition,
            )
            known += 1
            lag += max(0, row.lag)
            stable_lag += row.stable_lag
            since_ms = _earlier(since_ms, self._since(row))
            if self._detail != "group":
                _sum(topics.setdefault(topic, [0, 0, 0]), row)
            if self._detail == "partition":
                self._partitions.offer(row)
        if known:
            self.by_group[group] = lag
            self._groups.offer(GroupLag(lag, stable_lag, since_ms, group))
        for topic, sums in topics.items():
            self._topics.offer(TopicLag(sums[0], sums[1], sums[2], group, topic))

    def found(self) -> Generator[None, None, Lags]:
        parts = (self._groups, self._topics, self._partitions)
        lags = Lags(left_out=sum(each.left_out for each in parts), unknown=self._unknown)
        lags.groups = self._groups.largest_first()
        yield
        lags.topics = self._topics.largest_first()
        yield
        lags.partitions = self._partitions.largest_first()
        yield
        return lags

    def _since(self, row: PartitionLag) -> int:
        """Return when the end was seen that the group has not reached in this partition; 0 if there is none."""
        if row.lag <= 0:
            return 0
        place = (row.group, row.topic)
        before = self._before.get(place, _NEVER).get(row.partition)
        if before is None or row.offset >= before.end:
            before = _NotReached(row.end, self._now_ms)
        self.not_reached.setdefault(place, {})[row.partition] = before
        return before.seen_ms


def empty_in_steps(rows: MutableMapping[Any, dict[int, Any]]) -> Iterator[None]:
    """Empty `rows` in steps: to free a million ends at once would hold up the event loop."""
    while rows:
        partitions = rows.popitem()[1]
        while partitions:
            for _ in range(min(OFFSETS_PER_STEP, len(partitions))):
                partitions.popitem()
            yield


_NOTHING: Final[Mapping[int, PartitionEnd]] = {}
_NEVER: Final[Mapping[int, _NotReached]] = {}


def _earlier(one_ms: int, other_ms: int) -> int:
    return min(one_ms, other_ms) if one_ms and other_ms else one_ms or other_ms


def _sum(sums: list[int], row: PartitionLag) -> None:
    sums[0] += max(0, row.lag)
    sums[1] += row.stable_lag
    sums[2] += row.offset


class _Largest(Generic[Row]):
    """The rows with the largest lag of those that were offered."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._smallest_first: list[Row] = []
        self.left_out = 0

    def offer(self, row: Row) -> None:
        if len(self._smallest_first) < self._rows_max:
            heapq.heappush(self._smallest_first, row)
        else:
            heapq.heappushpop(self._smallest_first, row)
            self.left_out += 1

    def largest_first(self) -> list[Row]:
        return sorted(self._smallest_first, reverse=True)
