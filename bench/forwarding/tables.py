# SPDX-License-Identifier: Apache-2.0
"""What was measured as a part of RESULTS.md."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from bench.forwarding.asking import Asked
from bench.forwarding.producing import IN_FLIGHT
from bench.forwarding.streaming import CONNECTIONS, Carried
from bench.forwarding.turns import Felt
from bench.forwarding.ways import DIRECTLY, HAPROXY
from bench.page import facts_table

TITLE: Final = "# In front of a Kafka cluster"
HEAD: Final = f"""\
{TITLE}

One real broker, and the same bytes to and from it directly, through haproxy in TCP mode, and through a gateway.
Figures are medians of {{runs}} in which the ways took turns, in brackets the lowest and the highest. CPU is that of the
proxy with all its processes, in seconds for a gigabyte; Groupkeeper's has what the coordinator and the supervisor use,
also while Kafka's tools start and end. bench/README.md says more.
"""


FETCHES: Final = f"Fetches of 1 MB over {CONNECTIONS} connections"
PRODUCES: Final = f"Produce of 16 KB, {IN_FLIGHT} at a time on each of {CONNECTIONS} connections"
CONSUMER: Final = "kafka-consumer-perf-test, records of 1 KB"
PRODUCER: Final = "kafka-producer-perf-test, records of 1 KB"
ALONE: Final = "One record of 1 KB at a time"
COORDINATOR: Final = "The coordinator's event loop meanwhile"


class Measured(NamedTuple):
    """Everything, each run's."""

    fetched: Sequence[Carried]
    sent: Sequence[Carried]
    consumed: Sequence[Carried]
    produced: Sequence[Carried]
    asked: Sequence[Asked]
    felt: Sequence[Felt]


def markdown(measured: Measured, facts: Mapping[str, str], runs: int) -> str:
    """The whole part."""
    head = HEAD.format(runs="1 run" if runs == 1 else f"{runs} runs")
    tables = {
        FETCHES: _carried(measured.fetched),
        PRODUCES: _carried(measured.sent),
        CONSUMER: _carried(measured.consumed),
        PRODUCER: _carried(measured.produced),
        ALONE: _asked(measured.asked),
        COORDINATOR: _felt(measured.felt),
    }
    shown = ["\n".join([f"## {title}", "", *lines]) for title, lines in tables.items()]
    return "\n\n".join([f"{head}\n{facts_table(facts)}", *shown])


def _carried(found: Sequence[Carried]) -> Iterator[str]:
    by_way = {each.way: [other for other in found if other.way == each.way] for each in found}
    costs = {way: median(each.cpu_s_per_gb for each in runs) for way, runs in by_way.items()}
    yield "| way | MB/s | CPU s per GB | of haproxy's |"
    yield "|---|--:|--:|--:|"
    for way, runs in by_way.items():
        rate = _spread([each.mb_per_s for each in runs], 0)
        cost = "" if way == DIRECTLY else _spread([each.cpu_s_per_gb for each in runs], 2)
        ratio = "" if way == DIRECTLY or not costs[HAPROXY] else f"{costs[way] / costs[HAPROXY]:.2f}"
        yield f"| {way} | {rate} | {cost} | {ratio} |"


def _spread(numbers: Sequence[float], decimals: int) -> str:
    shown = [f"{number:,.{decimals}f}" for number in (median(numbers), min(numbers), max(numbers))]
    return shown[0] if len(numbers) == 1 else f"{shown[0]} ({shown[1]}-{shown[2]})"


def _asked(asked: Sequence[Asked]) -> Iterator[str]:
    yield "| way | produce p50 ms | produce added | fetch p50 ms | fetch added |"
    yield "|---|--:|--:|--:|--:|"
    direct = next(each for each in asked if each.way == DIRECTLY)
    for each in asked:
        added = [f"{each.produce_ms - direct.produce_ms:.2f}", f"{each.fetch_ms - direct.fetch_ms:.2f}"]
        if each is direct:
            added = ["", ""]
        yield f"| {each.way} | {each.produce_ms:.2f} | {added[0]} | {each.fetch_ms:.2f} | {added[1]} |"


def _felt(felt: Sequence[Felt]) -> Iterator[str]:
    yield "| forwarded | MB/s | longest turn, CPU ms | by the clock, ms | heartbeat p50 ms | p99 ms |"
    yield "|---|--:|--:|--:|--:|--:|"
    for each in felt:
        rate = f"{each.mb_per_s:,.0f}" if each.mb_per_s else ""
        turns = f"{each.turn_cpu_ms:.2f} | {each.turn_ms:.2f}"
        yield f"| {each.forwarded} | {rate} | {turns} | {each.p50_ms:.2f} | {each.p99_ms:.2f} |"
