# SPDX-License-Identifier: Apache-2.0
"""The figures of README.md, docs/gateway.md and docs/http.md: taken from RESULTS.md, in this one place.

RESULTS.md has them as they were measured; a reader of the others wants few digits and the two columns that differ.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.forwarding import tables
from bench.forwarding.turns import NOTHING, THROUGH_US
from bench.servers import REPOSITORY

RESULTS: Final = REPOSITORY / "bench" / "RESULTS.md"
README: Final = REPOSITORY / "README.md"
GATEWAY: Final = REPOSITORY / "docs" / "gateway.md"
HTTP: Final = REPOSITORY / "docs" / "http.md"
BROWSING: Final = "The page for browsers"
ANSWERS: Final = "Answers to its questions"
FIRST_PAGE: Final = "the first page, by group id"
BEGIN: Final = "<!-- figures: made of bench/RESULTS.md by `python -m bench figures` -->\n"
END: Final = "<!-- end of figures -->\n"
KAFKA, OS, ALWAYS = "Kafka", "Groupkeeper, log.flush=os", "Groupkeeper, log.flush=always"
SHOWN: Final = {
    "commit": "commits",
    "heartbeat": "heartbeats",
    "fetch": "fetches of a committed offset",
    "mixed": "90 heartbeats to 10 commits",
    "commit_p100": "commits of 100 partitions",
}
Row = dict[str, str]
Lines = Callable[[str], Iterator[str]]


class NoFigures(Exception):
    """RESULTS.md lacks what a page shows, or the page the place for it."""


def main(arguments: Sequence[str]) -> int:
    """Run `python -m bench figures`; returns 0, or 1 if with --check a page says something else."""
    parser = argparse.ArgumentParser(prog="python -m bench figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    shown = {page: page.read_text() for page in PAGES}
    wanted = {page: placed(text, RESULTS.read_text(), PAGES[page]) for page, text in shown.items()}
    if options.check:
        return int(shown != wanted)
    for page, text in wanted.items():
        page.write_text(text)
    return 0


def renew() -> None:
    """Bring the figures that were just written to RESULTS.md into the other pages, or say why not."""
    for page, lines in PAGES.items():
        try:
            page.write_text(placed(page.read_text(), RESULTS.read_text(), lines))
        except NoFigures as error:
            print(f"{page.name} keeps its figures: {error}", file=sys.stderr)


def placed(page: str, results: str, lines: Lines) -> str:
    """The page with the figures of RESULTS.md in their place. Raises NoFigures."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise NoFigures(f"the page has no place for them: {BEGIN.strip()}, {END.strip()}")
    return "".join((before, BEGIN, *lines(results), END, after))


def beside_kafka(results: str) -> Iterator[str]:
    """What README.md shows: requests per second and processor time beside a Kafka. Raises NoFigures."""
    facts = _facts(results)
    load, start = _table(results, "Load"), _table(results, "Start")
    runs = re.findall(r"median of (\d+ runs?)", results)
    if not runs or not {"date", "machine", "Kafka", "Python", "command"} <= facts.keys():
        raise NoFigures("bench/RESULTS.md does not say what was measured, and how")
    yield "\n| | Kafka: requests/s | CPU | Groupkeeper: requests/s | CPU |\n|---|--:|--:|--:|--:|\n"
    for scenario, name in SHOWN.items():
        cells = [
            cell
            for server in (KAFKA, OS)
            for row in [_row(load, scenario=scenario, server=server)]
            for cell in (_rate(row["requests/s"]), f"{_number(row['CPU s/100k']):.1f}")
        ]
        yield f"| {name} | {' | '.join(cells)} |\n"
    synced = _rate(_row(load, scenario="commit", server=ALWAYS)["requests/s"])
    ours, theirs = _row(start, server=OS), _row(start, server=KAFKA)
    listening = [f"{_number(row['listening ms']) / 1000:.1f} s" for row in (ours, theirs)]
    sentences = (
        f"With our default, `log.flush=always`, it took {synced} commits a second, each synced to disk.",
        f"It listened {listening[0]} after its start on an empty directory, where Kafka took {listening[1]},",
        f"and took {_number(ours['idle rss mib']):.0f} MiB of memory when idle.",
        f"These are medians of {runs[0]} on {facts['date'][:10]} on a machine that drove the load, too:",
        f"{facts['machine']}; Python {facts['Python'].split(',')[0]}, Kafka {facts['Kafka']}.",
        "The command that measures it needs Java 17 and Maven for its Kafka:",
    )
    yield f"\n{textwrap.fill(' '.join(sentences), 120)}\n"
    command = facts["command"].strip("`").removeprefix("python -m bench ").removesuffix(" --write")
    yield f'\n```sh\nmake bench ARGS="{command}"\n```\n\n'


def beside_haproxy(results: str) -> Iterator[str]:
    """What docs/gateway.md shows: a gateway's cost beside haproxy's, and the coordinator's turns. Raises NoFigures."""
    part = results.partition(f"{tables.TITLE}\n")[2]
    facts = _facts(part)
    if not {"date", "machine"} <= facts.keys():
        raise NoFigures("bench/RESULTS.md does not say what a gateway costs")
    rows = {
        "fetches of 1 MB, CPU s per GB": (tables.FETCHES, "CPU s per GB"),
        "`kafka-consumer-perf-test`, CPU s per GB": (tables.CONSUMER, "CPU s per GB"),
        "`kafka-producer-perf-test`, CPU s per GB": (tables.PRODUCER, "CPU s per GB"),
        "added to the median of producing a record alone, ms": (tables.ALONE, "produce added"),
        "added to the median of fetching one, ms": (tables.ALONE, "fetch added"),
    }
    yield "\n| | haproxy | Groupkeeper |\n|---|--:|--:|\n"
    for name, (title, column) in rows.items():
        found = _table(part, title)
        cells = [f"{_number(_row(found, way=way)[column]):.2f}" for way in ("haproxy", "Groupkeeper")]
        yield f"| {name} | {' | '.join(cells)} |\n"
    turns = _table(part, tables.COORDINATOR)
    idle, loaded = (_row(turns, forwarded=what) for what in (NOTHING, THROUGH_US))
    sentences = (
        f"While {_number(loaded['MB/s']):,.0f} MB a second passed, the longest turn of the coordinator's event loop",
        f"had {loaded['longest turn, CPU ms']} ms of processor time;",
        f"while nothing did, {idle['longest turn, CPU ms']} ms.",
        f"So measured on {facts['date'][:10]} on a machine that drove the load, too: {facts['machine']}.",
    )
    yield f"\n{textwrap.fill(' '.join(sentences), 120)}\n\n"


def of_many_groups(results: str) -> Iterator[str]:
    """What docs/http.md shows: how soon the first page of many groups is answered. Raises NoFigures."""
    part = results.partition(f"# {BROWSING}\n")[2]
    facts = _facts(part)
    if not {"date", "machine", "groups"} <= facts.keys():
        raise NoFigures("bench/RESULTS.md does not say how soon the page for browsers is answered")
    table = _table(part, ANSWERS)
    first = _row(table, question=FIRST_PAGE)
    turns = max(_number(row["longest turn, CPU ms"]) for row in table)
    sentences = (
        f"The first page of {facts['groups']} groups was answered in {_number(first['first answer, ms']):.0f} ms.",
        f"While all questions of the page were asked, the longest turn of the node's event loop took {turns:.1f} ms",
        "of processor time.",
        f"Measured with {facts['command']} on {facts['date'][:10]}: {facts['machine']}.",
    )
    yield f"\n{textwrap.fill(' '.join(sentences), 120)}\n\n"


def _facts(results: str) -> dict[str, str]:
    head = results.partition("\n## ")[0]
    return dict(re.findall(r"^\| (\w[\w ]*) \| (.+) \|$", head, re.MULTILINE))


def _table(results: str, title: str) -> list[Row]:
    section = results.partition(f"## {title}\n\n")[2].partition("\n\n")[0].splitlines()
    if len(section) < 3:
        raise NoFigures(f"bench/RESULTS.md has no table {title}")
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split(" |")] for line in section)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _row(table: Sequence[Row], **wanted: str) -> Row:
    for row in table:
        if wanted.items() <= row.items():
            return row
    raise NoFigures(f"bench/RESULTS.md has nothing of {', '.join(wanted.values())}")


def _number(cell: str) -> float:
    """The median of a cell; its range stands behind it."""
    return float(cell.partition(" ")[0].replace(",", ""))


def _rate(cell: str) -> str:
    return f"{round(_number(cell), -2):,.0f}"


PAGES: Final[dict[Path, Lines]] = {README: beside_kafka, GATEWAY: beside_haproxy, HTTP: of_many_groups}
