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

from coordinator.lag.lag_trend import LagStatus, PartitionTrend
from protocol.newtypes import GroupId

Detail = Literal["off", "group", "topic", "partition"]
"""The level of detail of the lag metrics (`metrics.lag`)."""
ROWS_MAX: Final = 10_000
"""The most groups, topics of groups and partitions of groups that are kept, each: those with the largest lag."""
TRENDS_MAX: Final = 500_000
"""The most partitions of groups whose progress is followed, some 340 bytes each. Further ones have no status."""
OFFSETS_PER_STEP: Final = 200
"""The number of offsets that are handled in one step: some 500 microseconds."""


class PartitionEnd(NamedTuple):
    """The end of a partition: the high watermark, and the last stable offset."""

    high: int
    stable: int


Ends = Mapping[str, Mapping[int, PartitionEnd]]
"""The ends by topic and partition, without the partitions whose end is not known now."""
FoundEnds = dict[str, dict[int, PartitionEnd]]
"""The same for one measurement, after which they are freed in steps."""

CommittedOffset = tuple[int, int, int]
"""Partition, offset, and when it was committed, in Unix milliseconds."""


class CommittedTopic(NamedTuple):
    """The committed offsets of a group in one topic.

    `is_read` is False if the topic does not count for the group's status: the offsets of a topic that the members no
    longer read stand still until they expire.
    """

    topic: str
    offsets: Iterable[CommittedOffset]
    is_read: bool = True


class CommittedGroup(NamedTuple):
    """A group with the number of its members, and its committed offsets by topic."""

    group: GroupId
    members: int
    topics: Iterable[CommittedTopic]


class GroupLag(NamedTuple):
    """The lag of one group: records behind the ends of all its partitions, and behind the stable ends.

    `since_ms` is when the oldest end was seen that it has not reached, in Unix milliseconds; 0 if there is none.
    """

    lag: int
    stable_lag: int
    since_ms: int
    group: GroupId
    members: int
    status: LagStatus


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
    """Rows beyond ROWS_MAX of a kind, which are in no list, and partitions beyond TRENDS_MAX."""
    unknown: int = 0
    """Committed offsets in partitions whose end is not known now; they count in no sum."""


Row = TypeVar("Row", GroupLag, TopicLag, PartitionLag)


Trends = dict[tuple[GroupId, str], dict[int, PartitionTrend]]
"""The trends of all partitions in which a group is behind.

By group and topic, then by partition: one dict of a million would move them all at once as it grows.
"""


class LagBook:
    """The lag of a node's groups, measured again and again; `newest` is the result of the last complete one."""

    def __init__(
        self, detail: Detail, window_ms: int, rows_max: int = ROWS_MAX, trends_max: int = TRENDS_MAX
    ) -> None:
        """Keep rows of the level `detail`, up to `rows_max` of each kind; the status looks back `window_ms`."""
        self.detail = detail
        self.rows_max = rows_max
        self._trends_max = trends_max
        self._window_ms = window_ms
        self._trends: Trends = {}
        self.newest = Lags()
        self.by_group: dict[GroupId, int] = {}
        """The lag of each group with a known one, of the same measurement."""

    def measure_in_steps(self, groups: Iterable[CommittedGroup], ends: Ends, now_ms: int) -> Iterator[None]:
        """Measure all groups at the moment `now_ms` (Unix milliseconds), and yield every OFFSETS_PER_STEP offsets."""
        measuring = _Measuring(
            self.detail, self.rows_max, ends, now_ms, self._window_ms, self._trends, self._trends_max
        )
        for group in groups:
            yield from measuring.add(group)
        before, self._trends = self._trends, measuring.trends
        self.newest = yield from measuring.found()
        earlier, self.by_group = self.by_group, measuring.by_group
        yield from empty_in_steps(before)
        while earlier:
            for _ in range(min(OFFSETS_PER_STEP, len(earlier))):
                earlier.popitem()
            yield


class _TopicMeasurement:
    """The measurement of a group in one topic."""

    __slots__ = (
        "_before",
        "_has_status",
        "_window_ms",
        "ends",
        "known",
        "lag",
        "now_ms",
        "offsets",
        "since_ms",
        "stable_lag",
        "status",
        "trends",
        "unknown",
    )

    def __init__(
        self,
        ends: Mapping[int, PartitionEnd],
        before: Mapping[int, PartitionTrend],
        now_ms: int,
        window_ms: int,
        *,
        has_status: bool,
    ) -> None:
        self.ends = ends
        self.now_ms = now_ms
        self._before = before
        self._has_status = has_status
        self._window_ms = window_ms
        self.lag = self.stable_lag = self.offsets = self.known = self.unknown = 0
        self.since_ms = now_ms
        self.status = LagStatus.OK
        self.trends: dict[int, PartitionTrend] = {}

    def add(self, partition: int, offset: int, committed_ms: int) -> None:
        end = self.ends.get(partition)
        trend = self._before.get(partition)
        if end is None:
            self.unknown += 1
            if trend is not None:  # the end may be missing for a while, as when a broker restarts
                self._look_back(partition, trend, committed_ms)
            return
        self.known += 1
        self.offsets += offset
        if end.stable > offset:
            self.stable_lag += end.stable - offset
        if end.high <= offset:
            return
        self.lag += end.high - offset
        if trend is None:
            self.trends[partition] = PartitionTrend(offset, end.high, self.now_ms)
        else:
            trend.follow(offset, end.high, self.now_ms)
            self._look_back(partition, trend, committed_ms)

    def _look_back(self, partition: int, trend: PartitionTrend, committed_ms: int) -> None:
        self.trends[partition] = trend
        self.since_ms = min(self.since_ms, trend.behind_since_ms)
        if self._has_status:
            self.status = max(self.status, trend.find_status(committed_ms, self.now_ms, self._window_ms))


class _GroupMeasurement:
    """The sums of a group over its topics."""

    __slots__ = ("is_known", "lag", "since_ms", "stable_lag", "status")

    def __init__(self) -> None:
        self.is_known = False
        self.lag = self.stable_lag = self.since_ms = 0
        self.status = LagStatus.OK

    def add(self, topic: _TopicMeasurement) -> None:
        self.is_known = self.is_known or topic.known > 0
        self.lag += topic.lag
        self.stable_lag += topic.stable_lag
        if topic.trends:
            self.since_ms = min(self.since_ms or topic.since_ms, topic.since_ms)
        self.status = max(self.status, topic.status)


class _Measuring:
    def __init__(
        self,
        detail: Detail,
        rows_max: int,
        ends: Ends,
        now_ms: int,
        window_ms: int,
        before: Trends,
        trends_max: int,
    ) -> None:
        self._detail = detail
        self._ends = ends
        self._now_ms = now_ms
        self._window_ms = window_ms
        self._before = before
        self._trends_left = trends_max
        self._trends_left_out = 0
        self._groups: _Largest[GroupLag] = _Largest(rows_max)
        self._topics: _Largest[TopicLag] = _Largest(rows_max)
        self._partitions: _Largest[PartitionLag] = _Largest(rows_max)
        self._unknown = 0
        self.trends: Trends = {}
        self.by_group: dict[GroupId, int] = {}

    def add(self, group: CommittedGroup) -> Iterator[None]:
        total = _GroupMeasurement()
        number = 0
        for topic in group.topics:
            measured = self._begin_topic(group.group, topic)
            for partition, offset, committed_ms in topic.offsets:
                if number % OFFSETS_PER_STEP == 0:
                    yield
                number += 1
                measured.add(partition, offset, committed_ms)
                if self._detail == "partition":
                    self._offer_partition(measured, group.group, topic.topic, partition, offset)
            self._end_topic(group.group, topic.topic, measured, total)
        if total.is_known:
            self.by_group[group.group] = total.lag
            self._groups.offer(
                GroupLag(
                    total.lag, total.stable_lag, total.since_ms, group.group, group.members, total.status
                )
            )

    def _begin_topic(self, group: GroupId, topic: CommittedTopic) -> _TopicMeasurement:
        return _TopicMeasurement(
            self._ends.get(topic.topic, _NOTHING),
            self._before.get((group, topic.topic), _NEVER),
            self._now_ms,
            self._window_ms,
            has_status=topic.is_read,
        )

    def _offer_partition(
        self, measured: _TopicMeasurement, group: GroupId, topic: str, partition: int, offset: int
    ) -> None:
        end = measured.ends.get(partition)
        if end is not None:
            lags = end.high - offset, max(0, end.stable - offset)
            self._partitions.offer(PartitionLag(*lags, offset, end.high, group, topic, partition))

    def _end_topic(
        self, group: GroupId, topic: str, measured: _TopicMeasurement, total: _GroupMeasurement
    ) -> None:
        total.add(measured)
        self._unknown += measured.unknown
        followed = len(measured.trends)
        if followed > self._trends_left:
            self._trends_left_out += followed
        elif followed:
            self._trends_left -= followed
            self.trends[group, topic] = measured.trends
        if measured.known and self._detail != "group":
            self._topics.offer(TopicLag(measured.lag, measured.stable_lag, measured.offsets, group, topic))

    def found(self) -> Generator[None, None, Lags]:
        parts = (self._groups, self._topics, self._partitions)
        left_out = self._trends_left_out + sum(each.left_out for each in parts)
        lags = Lags(left_out=left_out, unknown=self._unknown)
        lags.groups = self._groups.largest_first()
        yield
        lags.topics = self._topics.largest_first()
        yield
        lags.partitions = self._partitions.largest_first()
        yield
        return lags


def empty_in_steps(rows: MutableMapping[Any, dict[int, Any]]) -> Iterator[None]:
    """Empty `rows` in steps: to free a million ends at once would hold up the event loop."""
    while rows:
        partitions = rows.popitem()[1]
        while partitions:
            for _ in range(min(OFFSETS_PER_STEP, len(partitions))):
                partitions.popitem()
            yield


_NOTHING: Final[Mapping[int, PartitionEnd]] = {}
_NEVER: Final[Mapping[int, PartitionTrend]] = {}


class _Largest(Generic[Row]):
    """Keeps the rows with the largest lag among those offered."""

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
