# SPDX-License-Identifier: Apache-2.0
"""What a reset sets, as a function of the strategy and the state: properties of all plans."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coordinator.cli.errors import CommandError
from coordinator.cli.resets.strategy import (
    CannotPlan,
    Fact,
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
from coordinator.cli.resets.times import parse_datetime, parse_duration
from coordinator.cli.resets.wanted_partitions import is_wanted, parse_topics, select
from coordinator.cluster_requests.model import TopicPartition

OFFSETS = st.integers(0, 2**63 - 1)
PLACES = st.builds(TopicPartition, st.sampled_from(["orders", "jobs"]), st.integers(0, 5))


@st.composite
def states(draw: st.DrawFn) -> tuple[list[TopicPartition], OffsetsByPartition]:
    """Partitions with a start before their end, something committed in all of them, and a place at some time."""
    places = draw(st.lists(PLACES, unique=True, min_size=1))
    bounds = {place: sorted([draw(OFFSETS), draw(OFFSETS)]) for place in places}
    return places, OffsetsByPartition(
        committed={place: draw(OFFSETS) for place in places},
        starts={place: low for place, (low, _) in bounds.items()},
        ends={place: high for place, (_, high) in bounds.items()},
        at_time={place: draw(st.one_of(st.just(-1), st.integers(*bounds[place]))) for place in places},
    )


@st.composite
def strategies_for(draw: st.DrawFn, places: list[TopicPartition]) -> Strategy:
    """Any strategy, that has something to say about each of the partitions."""
    given_offsets = {place: draw(OFFSETS) for place in places}
    simple: list[Strategy] = [ToEarliest(), ToLatest(), ToCurrent(), ToTime(0), ToGiven(given_offsets)]
    numbers: list[Strategy] = [ToOffset(draw(OFFSETS)), ShiftBy(draw(st.integers(-(2**63), 2**63 - 1)))]
    return draw(st.sampled_from([*simple, *numbers]))


@given(states(), st.data())
def test_a_plan_has_every_partition_and_no_other(
    state: tuple[list[TopicPartition], OffsetsByPartition], data: st.DataObject
) -> None:
    places, facts = state
    strategy = data.draw(strategies_for(places))
    assert plan(strategy, places, facts).keys() == set(places)


@given(states(), st.data())
def test_a_plan_stays_between_start_and_end(
    state: tuple[list[TopicPartition], OffsetsByPartition], data: st.DataObject
) -> None:
    places, facts = state
    strategy = data.draw(strategies_for(places))
    assume(not isinstance(strategy, ToCurrent))  # which keeps what is there, wherever it is
    for place, offset in plan(strategy, places, facts).items():
        start, end = facts.starts[place], facts.ends[place]
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert start <= offset <= end


@given(states(), st.data())
def test_a_plan_from_its_own_file_is_itself(
    state: tuple[list[TopicPartition], OffsetsByPartition], data: st.DataObject
) -> None:
    places, facts = state
    first = plan(data.draw(strategies_for(places)), places, facts)
    assert plan(ToGiven(first), places, facts, unchecked=True) == first


@given(states(), st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
def test_shifts_add_up_where_nothing_is_in_the_way(
    state: tuple[list[TopicPartition], OffsetsByPartition], first: int, second: int
) -> None:
    places, facts = state
    assume(all(offset + min(first, first + second) >= 0 for offset in facts.committed.values()))
    once = plan(ShiftBy(first), places, facts, unchecked=True)
    twice = plan(ShiftBy(second), places, OffsetsByPartition(committed=once), unchecked=True)
    assert twice == plan(ShiftBy(first + second), places, facts, unchecked=True)


@given(states(), st.data(), st.booleans())
def test_a_plan_looks_at_nothing_but_what_it_says_it_needs(
    state: tuple[list[TopicPartition], OffsetsByPartition], data: st.DataObject, unchecked: bool
) -> None:
    places, facts = state
    strategy = data.draw(strategies_for(places))
    wanted = required_facts(strategy, unchecked=unchecked)
    only = OffsetsByPartition(
        committed=facts.committed if Fact.COMMITTED in wanted else {},
        starts=facts.starts if Fact.START in wanted else {},
        ends=facts.ends if Fact.END in wanted else {},
        at_time=facts.at_time if Fact.AT_TIME in wanted else {},
    )
    known = plan(strategy, places, facts, unchecked=unchecked)
    assert plan(strategy, places, only, unchecked=unchecked) == known


@pytest.mark.parametrize("found", ["UNSUPPORTED_FOR_MESSAGE_FORMAT", -1])
@given(state=states(), data=st.data())
def test_without_a_fact_that_it_needs_nothing_is_planned(
    state: tuple[list[TopicPartition], OffsetsByPartition], data: st.DataObject, found: str | int
) -> None:
    places, facts = state
    blind_to: list[Strategy] = [ToEarliest(), ToLatest(), ToOffset(7), ShiftBy(1), ToTime(0)]
    strategy = data.draw(st.sampled_from(blind_to))
    unknown: Mapping[TopicPartition, int | str] = {**facts.ends, places[0]: found}
    blind = OffsetsByPartition(committed={}, starts=unknown, ends=unknown, at_time=unknown)
    with pytest.raises(CannotPlan, match=str(places[0]) if not isinstance(strategy, ShiftBy) else "shifted"):
        plan(strategy, places, blind)


@pytest.mark.parametrize("answer", [None, -1, "UNSUPPORTED_FOR_MESSAGE_FORMAT"])
@pytest.mark.parametrize(
    ("strategy", "advice"),
    [
        (ToLatest(), "set groupkeeper.end.group of the topic"),
        (ToOffset(3), "give the offsets by number, with --unchecked"),
        (ToTime(1), "--to-offset, --shift-by or --from-file"),
    ],
    ids=["end", "bounds", "time"],
)
def test_what_a_node_cannot_know_has_a_way_out(
    strategy: Strategy, advice: str, answer: int | str | None
) -> None:
    place = TopicPartition("work", 0)
    unknown = {} if answer is None else {place: answer}
    time = (
        unknown
        if isinstance(strategy, ToTime) and answer != -1
        else {place: "UNSUPPORTED_FOR_MESSAGE_FORMAT"}
    )
    with pytest.raises(CannotPlan) as raised:
        plan(strategy, [place], OffsetsByPartition(starts={place: 0}, ends=unknown, at_time=time))
    assert str(raised.value).startswith("the ")
    assert advice in str(raised.value)
    assert "UNSUPPORTED" not in str(raised.value)


def test_another_error_is_named() -> None:
    place = TopicPartition("work", 0)
    with pytest.raises(CannotPlan, match=r"^the end of work-0 is not known \(NOT_LEADER_OR_FOLLOWER\)$"):
        plan(ToLatest(), [place], OffsetsByPartition(ends={place: "NOT_LEADER_OR_FOLLOWER"}))


# --- times ---


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT15M", 900_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt0.001s", 1),
        ("-PT1H", -3_600_000),
        ("PT-1H", -3_600_000),
        ("90m", 5_400_000),
        ("2w", 1_209_600_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "15", "1H", "P1Y", "PT1M1H", "soon", "-5m", "PT1S "])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-22T10:30:00.000", datetime(2026, 11, 22, 10, 30, tzinfo=UTC)),
        ("2026-11-22T10:30:00.000Z", datetime(2026, 11, 22, 10, 30, tzinfo=UTC)),
        ("2026-11-22T10:30:00.250+01:00", datetime(2026, 11, 22, 9, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, moment: datetime) -> None:
    assert parse_datetime(text) == round(moment.timestamp() * 1000)


# --- partitions ---


def test_partitions_are_chosen_by_pattern_list_and_range() -> None:
    topics = {"orders-eu": 4, "orders-us": 3, "jobs": 2}
    wanted = parse_topics(["orders-*:0,2", "jobs"])
    chosen = select(wanted, topics)
    assert chosen == [
        TopicPartition("jobs", 0),
        TopicPartition("jobs", 1),
        *(TopicPartition(name, number) for name in ("orders-eu", "orders-us") for number in (0, 2)),
    ]
    assert all(is_wanted(place, wanted) for place in chosen)
    assert not is_wanted(TopicPartition("orders-eu", 1), wanted)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [("nope", "there is no topic nope"), ("jobs:1-2", "topic jobs has 2 partitions, but no partition 2")],
)
def test_what_is_not_there_cannot_be_chosen(wanted: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        select(parse_topics([wanted]), {"jobs": 2})


def test_offsets_beyond_start_or_end_are_named() -> None:
    places = [TopicPartition("t", number) for number in range(4)]
    facts = OffsetsByPartition(
        committed=dict.fromkeys(places, 50),
        starts=dict.fromkeys(places, 10),
        ends=dict(zip(places, (5_000, 100, 60, 50), strict=True)),
    )
    offsets = plan(ShiftBy(20), places, facts)
    assert list(offsets.values()) == [70, 70, 60, 50]
    assert find_clamped_partitions(ShiftBy(20), offsets, facts) == places[2:]
    assert find_clamped_partitions(ToOffset(5), plan(ToOffset(5), places, facts), facts) == places
    assert find_clamped_partitions(ToLatest(), plan(ToLatest(), places, facts), facts) == []
