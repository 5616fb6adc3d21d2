# SPDX-License-Identifier: Apache-2.0
"""What was measured as a part of RESULTS.md."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bench.page import facts_table
from bench.polling.brokers import RIGHTS

TITLE: Final = "# Monitors that poll groups at the cluster"
HEAD: Final = f"""\
{TITLE}

{{groups:,}} groups with {{partitions}} committed offsets each are at a cluster of three brokers. The gateway before it
has two workers, one process that forwards, and none of these groups. A monitor asks for all of them in {{rounds}}
rounds, directly and through the gateway in turns; each cell has a figure for each round. It keeps one connection to
each node, asks the nodes side by side, and checks each answer. bench/README.md says more.
"""
TAKEN: Final = "What a poll takes"
ASKED: Final = "How often nodes and brokers are asked"
TURNS: Final = "The longest turn of an event loop meanwhile"
DIRECTLY: Final = "directly"
GATEWAY: Final = "gateway"
APIS: Final = ("DescribeGroups", "OffsetFetch", "FindCoordinator", RIGHTS)
"""What brokers are asked for a poll."""


class Round(NamedTuple):
    """One poll of all groups."""

    poll: str
    way: str
    wall_ms: float
    cpu_ms: Mapping[str, float]
    """By kind of process."""


class Counts(NamedTuple):
    """What was asked for one poll through the gateway."""

    poll: str
    requests: int
    """Of the monitor."""
    located: Sequence[int]
    """LocateGroups at each node."""
    brokers: Sequence[Counter[str]]
    """By api, at each broker."""


class Longest(NamedTuple):
    """The longest turns of one kind of process in all rounds of a poll."""

    poll: str
    process: str
    cpu_ms: float
    wall_ms: float


class Measured(NamedTuple):
    """Everything."""

    groups: int
    partitions: int
    rounds: int
    took: Sequence[Round]
    asked: Sequence[Counts]
    turns: Sequence[Longest]
    taken_over: int
    """Groups that are at the gateway afterwards."""


def markdown(measured: Measured, facts: Mapping[str, str]) -> str:
    """The whole part."""
    head = HEAD.format(groups=measured.groups, partitions=measured.partitions, rounds=measured.rounds)
    tables = {TAKEN: _took(measured), ASKED: _asked(measured), TURNS: _turns(measured)}
    shown = ["\n".join([f"## {title}", "", *lines]) for title, lines in tables.items()]
    last = f"Groups that the gateway had taken over afterwards: {measured.taken_over}."
    return "\n\n".join([f"{head}\n{facts_table(facts)}", *shown, last])


def _took(measured: Measured) -> Iterator[str]:
    processes = list(dict.fromkeys(name for each in measured.took for name in each.cpu_ms))
    yield f"| poll | way | wall ms | {' | '.join(f'CPU ms of the {name}' for name in processes)} |"
    yield f"|---|---|{'--:|' * (len(processes) + 1)}"
    for poll, way in dict.fromkeys((each.poll, each.way) for each in measured.took):
        rounds = [each for each in measured.took if (each.poll, each.way) == (poll, way)]
        wall = _cell([each.wall_ms for each in rounds])
        cpu = [_cell([each.cpu_ms[name] for each in rounds if name in each.cpu_ms]) for name in processes]
        yield f"| {poll} | {way} | {' | '.join([wall, *cpu])} |"


def _cell(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.0f}" for number in numbers)


def _asked(measured: Measured) -> Iterator[str]:
    titles = ["requests of the monitor", "LocateGroups, by node", *(f"{api}, by broker" for api in APIS)]
    yield f"| poll | round | {' | '.join(titles)} |"
    yield f"|---|--:|{'--:|' * len(titles)}"
    seen: Counter[str] = Counter()
    for each in measured.asked:
        seen[each.poll] += 1
        cells = [" + ".join(f"{broker[api]:,}" for broker in each.brokers) for api in APIS]
        located = " + ".join(f"{count:,}" for count in each.located)
        yield f"| {each.poll} | {seen[each.poll]} | {each.requests:,} | {located} | {' | '.join(cells)} |"


def _turns(measured: Measured) -> Iterator[str]:
    yield "| poll | process | longest turn, CPU ms | by the clock, ms |"
    yield "|---|---|--:|--:|"
    for each in measured.turns:
        yield f"| {each.poll} | {each.process} | {each.cpu_ms:.2f} | {each.wall_ms:.2f} |"
