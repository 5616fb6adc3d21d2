# SPDX-License-Identifier: Apache-2.0
"""How far groups are behind, and since when."""

import re
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from coordinator.admin.lag_metrics import LagCollector
from coordinator.admin.reference.metrics_markdown_page import heading
from coordinator.lag.lag_book import (
    OFFSETS_PER_STEP,
    CommittedGroup,
    CommittedOffset,
    CommittedTopic,
    Detail,
    GroupLag,
    LagBook,
    Lags,
    PartitionEnd,
    PartitionLag,
    TopicLag,
    empty_in_steps,
)
from coordinator.lag.lag_trend import LagStatus
from protocol.newtypes import GroupId

ROOT = Path(__file__).parents[2]
G, H = GroupId("g"), GroupId("h")
WINDOW_MS = 60_000
Offsets = Mapping[tuple[str, int], int]


def by_topic_of(offsets: Offsets) -> list[CommittedTopic]:
    topics: dict[str, list[CommittedOffset]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append((partition, offset, 1_000))
    return [CommittedTopic(topic, found) for topic, found in topics.items()]


def measure(
    book: LagBook,
    groups: Mapping[GroupId, Offsets],
    ends: Mapping[tuple[str, int], PartitionEnd],
    now_ms: int = 1_000,
) -> Lags:
    by_topic: dict[str, dict[int, PartitionEnd]] = {}
    for (topic, partition), end in ends.items():
        by_topic.setdefault(topic, {})[partition] = end
    committed = [CommittedGroup(group, 2, by_topic_of(offsets)) for group, offsets in groups.items()]
    for _ in book.measure_in_steps(committed, by_topic, now_ms):
        pass
    return book.newest


ENDS = {("t", 0): PartitionEnd(10, 8), ("t", 1): PartitionEnd(5, 5), ("u", 0): PartitionEnd(7, 7)}


def test_each_detail_has_what_the_coarser_ones_have() -> None:
    groups = {G: {("t", 0): 4, ("t", 1): 5, ("u", 0): 9}}
    for_groups = [GroupLag(6, 4, 1_000, G, 2, LagStatus.OK)]
    for_topics = [TopicLag(6, 4, 9, G, "t"), TopicLag(0, 0, 9, G, "u")]
    for_partitions = [
        PartitionLag(6, 4, 4, 10, G, "t", 0),
        PartitionLag(0, 0, 5, 5, G, "t", 1),
        PartitionLag(-2, 0, 9, 7, G, "u", 0),  # as Kafka's tool shows it; it is no part of the sums
    ]
    assert measure(LagBook("group", WINDOW_MS), groups, ENDS) == Lags(for_groups)
    assert measure(LagBook("topic", WINDOW_MS), groups, ENDS) == Lags(for_groups, for_topics)
    assert measure(LagBook("partition", WINDOW_MS), groups, ENDS) == Lags(
        for_groups, for_topics, for_partitions
    )


def test_a_partition_whose_end_is_unknown_counts_in_no_sum() -> None:
    groups = {G: {("t", 0): 4, ("elsewhere", 0): 4}, H: {("elsewhere", 0): 1}}
    assert measure(LagBook("group", WINDOW_MS), groups, ENDS) == Lags(
        [GroupLag(6, 4, 1_000, G, 2, LagStatus.OK)], unknown=2
    )


def test_since_when_is_the_oldest_end_that_was_not_reached() -> None:
    book = LagBook("group", WINDOW_MS)

    def since(offset: int, end: int, now_ms: int) -> int:
        lags = measure(book, {G: {("t", 0): offset}}, {("t", 0): PartitionEnd(end, end)}, now_ms)
        return lags.groups[0].since_ms

    assert since(10, 10, 1_000) == 0
    assert since(10, 20, 2_000) == 2_000
    assert since(15, 30, 3_000) == 2_000, "the end of then, 20, is not reached"
    assert since(20, 40, 4_000) == 4_000, "a group that keeps up is behind by one measurement"
    assert since(20, 40, 5_000) == 4_000
    assert since(40, 40, 6_000) == 0
    assert since(40, 41, 7_000) == 7_000
    assert since(0, 41, 8_000) == 7_000, "it was set back"


SORTED = 3
"""The lists of groups, topics and partitions are sorted in a step each."""


def wide_group(group: GroupId, offsets: list[CommittedOffset]) -> CommittedGroup:
    return CommittedGroup(group, 0, [CommittedTopic("t", offsets)])


def test_it_gives_way_within_a_large_group() -> None:
    offsets = [(number, 0, 0) for number in range(10 * OFFSETS_PER_STEP)]
    book = LagBook("group", WINDOW_MS)
    steps = sum(
        1
        for _ in book.measure_in_steps(
            [wide_group(G, offsets), wide_group(H, offsets[:1])],
            {"t": {0: PartitionEnd(1, 1)}},
            1_000,
        )
    )
    assert steps == 11 + SORTED
    assert {row.group for row in book.newest.groups} == {G, H}


def test_what_is_not_needed_any_more_is_freed_in_steps() -> None:
    parts = 10
    offsets = [(number, 0, 0) for number in range(parts * OFFSETS_PER_STEP)]
    ends = {"t": dict.fromkeys(range(len(offsets)), PartitionEnd(1, 1))}
    book = LagBook("group", WINDOW_MS)
    for freed in (0, parts, parts):
        steps = sum(1 for _ in book.measure_in_steps([wide_group(G, offsets)], ends, 1_000))
        assert steps == parts + SORTED + freed + bool(freed)
    assert sum(1 for _ in empty_in_steps(ends)) == parts
    assert not ends


def test_the_lags_of_the_last_measurement_are_freed_in_steps() -> None:
    groups = [wide_group(GroupId(f"g{number}"), [(0, 1, 0)]) for number in range(3 * OFFSETS_PER_STEP)]
    book = LagBook("group", WINDOW_MS)
    assert sum(1 for _ in book.measure_in_steps(groups, {}, 1_000)) == len(groups) + SORTED
    assert not book.by_group
    ends = {"t": {0: PartitionEnd(1, 1)}}
    for freed in (0, 3):
        assert sum(1 for _ in book.measure_in_steps(groups, ends, 1_000)) == len(groups) + SORTED + freed
        assert book.by_group == dict.fromkeys((each.group for each in groups), 0)


def test_only_the_largest_rows_are_kept() -> None:
    groups = {GroupId(f"g{number}"): {("t", 0): 10 - number} for number in range(5)}
    book = LagBook("partition", WINDOW_MS, rows_max=2)
    lags = measure(book, groups, ENDS)
    assert len(book.by_group) == 5, "the lag of each group is known"
    assert [row.group for row in lags.groups] == ["g4", "g3"]
    assert [row.group for row in lags.partitions] == ["g4", "g3"]
    assert lags.left_out == 9


def test_only_so_many_partitions_are_followed() -> None:
    groups = {GroupId(f"g{number}"): {("t", 0): 1, ("t", 1): 1} for number in range(3)}
    book = LagBook("group", WINDOW_MS, trends_max=5)
    lags = measure(book, groups, ENDS)
    assert lags.left_out == 2
    stalled = measure(book, groups, {place: PartitionEnd(20, 20) for place in ENDS}, 1_000 + 2 * WINDOW_MS)
    behind = {row.group: (row.lag, row.status) for row in stalled.groups}
    assert behind == {
        "g0": (38, LagStatus.STOPPED),
        "g1": (38, LagStatus.STOPPED),
        "g2": (38, LagStatus.OK),
    }, "the lag is right also where the progress is not followed"


OFFSETS = st.dictionaries(st.tuples(st.sampled_from("tu"), st.integers(0, 2)), st.integers(0, 20), max_size=6)


@given(st.dictionaries(st.sampled_from([G, H]), OFFSETS), OFFSETS)
def test_the_sums_are_those_of_the_partitions(groups: dict[GroupId, Offsets], ends: Offsets) -> None:
    lags = measure(
        LagBook("partition", WINDOW_MS),
        groups,
        {place: PartitionEnd(end, end // 2) for place, end in ends.items()},
    )
    for group in lags.groups:
        rows = [row for row in lags.partitions if row.group == group.group]
        behind = sum(max(0, r.lag) for r in rows), sum(r.stable_lag for r in rows)
        assert (group.lag, group.stable_lag) == behind
        assert bool(group.since_ms) == bool(group.lag)
    for topic in lags.topics:
        rows = [row for row in lags.partitions if (row.group, row.topic) == (topic.group, topic.topic)]
        assert topic.lag == sum(max(0, r.lag) for r in rows)
        assert topic.offsets == sum(r.offset for r in rows)
    known = sum(place in ends for offsets in groups.values() for place in offsets)
    assert (len(lags.partitions), lags.unknown) == (known, sum(map(len, groups.values())) - known)


def page(detail: Detail) -> str:
    book = LagBook(detail, WINDOW_MS)
    measure(book, {G: {("t", 0): 4}}, ENDS)
    registry = CollectorRegistry()
    registry.register(LagCollector(book, lambda: 31.0))
    return generate_latest(registry).decode()


def test_the_metrics_have_kafka_exporters_names() -> None:
    coarse, middle, fine = page("group"), page("topic"), page("partition")
    for each in (coarse, middle, fine):
        assert 'groupkeeper_group_lag{consumergroup="g"} 6.0' in each
        assert 'groupkeeper_group_stable_lag{consumergroup="g"} 4.0' in each
        assert 'groupkeeper_group_lag_seconds{consumergroup="g"} 30.0' in each
        assert 'groupkeeper_group_status{consumergroup="g",status="ok"} 1.0' in each
        assert 'groupkeeper_group_members{consumergroup="g"} 2.0' in each
    assert 'kafka_consumergroup_lag_sum{consumergroup="g",topic="t"} 6.0' in middle
    assert 'kafka_consumergroup_current_offset_sum{consumergroup="g",topic="t"} 4.0' in middle
    assert 'kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 6.0' in fine
    assert 'kafka_consumergroup_current_offset{consumergroup="g",partition="0",topic="t"} 4.0' in fine
    assert "topic=" not in coarse
    assert "partition=" not in middle


def test_the_page_of_metrics_explains_them() -> None:
    section = (ROOT / "docs" / "metrics.md").read_text().partition(heading("In front of a Kafka cluster"))[2]
    explained = set(
        re.findall(r"^\| `((?:groupkeeper|kafka)_\w+)`", section.partition("<a id=")[0], re.MULTILINE)
    )
    shown = set(re.findall(r"^# TYPE (\w+) gauge$", page("partition"), re.MULTILINE))
    assert explained == shown
