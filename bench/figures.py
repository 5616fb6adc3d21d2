# SPDX-License-Identifier: Apache-2.0
"""The figures of README.md: taken from RESULTS.md, in this one place.

RESULTS.md has them as they were measured; a reader of README.md wants few digits and the two columns that differ.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from bench.servers import REPOSITORY

RESULTS: Final = REPOSITORY / "bench" / "RESULTS.md"
README: Final = REPOSITORY / "README.md"
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


class NoFigures(Exception):
    """RESULTS.md lacks what README.md shows, or README.md the place for it."""


def main(arguments: Sequence[str]) -> int:
    """Run `python -m bench figures`; returns 0, or 1 if with --check README.md says something else."""
    parser = argparse.ArgumentParser(prog="python -m bench figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    readme = README.read_text()
    wanted = placed(readme, RESULTS.read_text())
    if options.check:
        return int(readme != wanted)
    README.write_text(wanted)
    return 0


def renew() -> None:
    """Bring the figures that were just written to RESULTS.md into README.md, or say why not."""
    try:
        README.write_text(placed(README.read_text(), RESULTS.read_text()))
    except NoFigures as error:
        print(f"README.md keeps its figures: {error}", file=sys.stderr)


def placed(readme: str, results: str) -> str:
    """README.md with the figures of RESULTS.md in their place. Raises NoFigures."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise NoFigures(f"README.md has no place for them: {BEGIN.strip()}, {END.strip()}")
    return "".join((before, BEGIN, *_lines(results), END, after))


def _lines(results: str) -> Iterator[str]:
    facts = dict(re.findall(r"^\| (\w[\w ]*) \| (.+) \|$", results.partition("\n## ")[0], re.MULTILINE))
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
