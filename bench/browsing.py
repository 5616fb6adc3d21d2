# SPDX-License-Identifier: Apache-2.0
"""`python -m bench browsing`: how soon the addresses behind the page for browsers answer when there are many groups.

Each question is asked again and again, one at a time. An answer counts from the request to its last byte. The turns are
those of the node's event loop meanwhile, by the processor time of its thread and by the clock; the node runs on
asyncio's own loop, because uvloop's turns cannot be seen one by one.
"""

import argparse
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import figures
from bench.cluster import Cluster
from bench.machine import describe
from bench.page import facts_table, write_part
from bench.stocked import SETTINGS, stock
from bench.watched import Turn, WatchedNode

TIMEOUT_S: Final = 1_800.0
TURN_LIMIT_S: Final = 0.020
QUESTIONS: Final = {
    figures.FIRST_PAGE: "groups",
    "the first page, largest lag first": "groups?sort=lag&order=desc",
    "the first page, by state": "groups?sort=state",
    "a search that finds one group in 24": "groups?search=billing-worker",
    "a search that finds nothing": "groups?search=nothing",
    "one group": "group?group=billing",
    "its offsets": "group/offsets?group=billing",
    "the status of all nodes": "status",
    "the partitions": "partitions",
}


class Asked(NamedTuple):
    """One question with its answers: when the asking began and ended, and how long each answer took, in seconds."""

    name: str
    began: float
    ended: float
    took_s: list[float]


def ask(node: WatchedNode, name: str, path: str, rounds: int) -> Asked:
    """Ask for one address so many times."""
    began = time.monotonic()
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        with urllib.request.urlopen(f"http://{node.metrics}/api/v1/{path}", timeout=60) as answer:
            answer.read()
        took.append(time.perf_counter() - start)
    return Asked(name, began, time.monotonic(), took)


def table(asked: Iterable[Asked], turns: Sequence[Turn]) -> Iterator[str]:
    """A Markdown table with a row for each question."""
    yield "| question | first answer, ms | slowest, ms | longest turn, CPU ms | by the clock, ms | turns over 20 ms |"
    yield "|---|---|---|---|---|---|"
    for each in asked:
        mine = [turn for turn in turns if each.began <= turn.ended <= each.ended]
        cpu = max((turn.cpu_s for turn in mine), default=0.0)
        wall = max((turn.wall_s for turn in mine), default=0.0)
        over = sum(turn.cpu_s > TURN_LIMIT_S for turn in mine)
        yield (
            f"| {each.name} | {each.took_s[0] * 1e3:.1f} | {max(each.took_s) * 1e3:.1f}"
            f" | {cpu * 1e3:.1f} | {wall * 1e3:.1f} | {over} |"
        )


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit status. Raises NotStarted and Unprepared."""
    parser = argparse.ArgumentParser(prog="python -m bench browsing", description=__doc__)
    parser.add_argument("--groups", type=int, default=100_000, help="on the node (%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="of each question (%(default)s)")
    parser.add_argument("--write", action="store_true", help="renew the part of RESULTS.md")
    options = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="bench-"))
    facts = describe(work)
    with WatchedNode("groupkeeper", work, SETTINGS) as node:
        node.start()
        with Cluster(node.address, timeout_s=TIMEOUT_S) as cluster:
            stock(cluster, options.groups)
        asked = [ask(node, name, path, options.rounds) for name, path in QUESTIONS.items()]
        node.stop()
        lines = list(table(asked, node.turns()))
    print(*lines, sep="\n")
    if options.write:
        command = f"`python -m bench browsing --groups {options.groups} --rounds {options.rounds} --write`"
        shown = facts_table({**facts, "command": command, "groups": f"{options.groups:,}"})
        title = f"# {figures.BROWSING}"
        write_part(figures.RESULTS, "\n\n".join([title, shown, f"## {figures.ANSWERS}", "\n".join(lines)]))
        figures.renew()
    return 0
