# SPDX-License-Identifier: Apache-2.0
"""Several runs of several servers, and the page that they make (RESULTS.md)."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from bench.page import facts_table
from bench.report import Result, cell, pick

CPU: Final = ("server_cpu_s_per_100k",)
COLUMNS: Final = (
    ("requests/s", ("requests_per_s",), 0),
    ("CPU s/100k", CPU, 2),
    ("p50 ms", ("latency_ms", "p50"), 2),
    ("p99 ms", ("latency_ms", "p99"), 2),
    ("driver CPU s/100k", ("driver_cpu_s_per_100k",), 2),
)

HEAD: Final = """\
# Results

Each figure is the median of {runs} in which the servers took turns; in brackets the lowest and the highest.
CPU is user and system time of the server with its children, in seconds per 100,000 requests. Latency
counts from writing a request to reading its reply, so it holds the wait behind earlier requests of the same
connection. An answer with an error code is an error and no request served. The driver is one process on the
same machine, and has a column of its own. bench/README.md says what the scenarios do.
"""


class Runs:
    """Results by scenario and server, in the order in which they came."""

    def __init__(self) -> None:
        self._results: dict[str, dict[str, list[Result]]] = {}

    def add(self, scenario: str, server: str, result: Result) -> None:
        """Keep one more result."""
        self._results.setdefault(scenario, {}).setdefault(server, []).append(result)

    def plain(self) -> dict[str, dict[str, list[Result]]]:
        """Everything, for JSON."""
        return self._results

    def errors(self) -> int:
        """How many errors there were in all."""
        return sum(result["errors"] for _scenario, _server, found in self.rows() for result in found)

    def rows(self) -> Iterator[tuple[str, str, list[Result]]]:
        """Scenario, server and its results."""
        for scenario, by_server in self._results.items():
            for server, found in by_server.items():
                yield scenario, server, found

    def median(self, scenario: str, server: str, path: Sequence[str]) -> float | None:
        """The median of a number over a server's runs; None where there is none."""
        numbers = _numbers(self._results.get(scenario, {}).get(server, []), path)
        return median(numbers) if numbers else None


def markdown(runs: Runs, facts: Mapping[str, str], reference: str) -> str:
    """The whole page. `reference` is the server whose CPU the others' is compared with."""
    most = max((len(found) for _scenario, _server, found in runs.rows()), default=0)
    head = HEAD.format(runs="1 run" if most == 1 else f"{most} runs")
    parts = [head, f"{facts_table(facts)}\n", *_load_tables(runs, reference), *_finding_tables(runs)]
    return "\n".join(parts)


def _load_tables(runs: Runs, reference: str) -> Iterator[str]:
    titles = [title for title, _path, _decimals in COLUMNS]
    rows = [row for row in runs.rows() if any(_is_load(result) for result in row[2])]
    if not rows:
        return
    yield "## Load\n"
    yield f"| scenario | server | {' | '.join(titles)} | CPU of {reference}'s | errors |"
    yield f"|---|---|{'--:|' * (len(titles) + 2)}"
    for scenario, server, found in rows:
        cells = [_with_range(_numbers(found, path), decimals) for _title, path, decimals in COLUMNS]
        own, theirs = runs.median(scenario, server, CPU), runs.median(scenario, reference, CPU)
        ratio = f"{own / theirs:.2f}" if own is not None and theirs and server != reference else ""
        errors = sum(result["errors"] for result in found)
        yield f"| {scenario} | {server} | {' | '.join(cells)} | {ratio} | {errors} |"
    yield ""


def _is_load(result: Result) -> bool:
    # A run that failed holds nothing but its errors: it must be seen too.
    return CPU[0] in result or "findings" not in result


def _finding_tables(runs: Runs) -> Iterator[str]:
    """One table for each scenario with findings of its own."""
    scenarios = dict.fromkeys(
        scenario for scenario, _, found in runs.rows() if any(r.get("findings") for r in found)
    )
    for scenario in scenarios:
        rows = [(server, found) for name, server, found in runs.rows() if name == scenario]
        names = list(
            dict.fromkeys(
                name for _, found in rows for result in found for name in result.get("findings", {})
            )
        )
        yield f"## {scenario.capitalize()}\n"
        yield f"| server | {' | '.join(name.replace('_', ' ') for name in names)} | errors |"
        yield f"|---|{'--:|' * (len(names) + 1)}"
        for server, found in rows:
            cells = [_with_range(_numbers(found, ("findings", name)), None) for name in names]
            yield f"| {server} | {' | '.join(cells)} | {sum(result['errors'] for result in found)} |"
        yield ""


def _numbers(found: Sequence[Result], path: Sequence[str]) -> list[float]:
    return [number for number in (pick(result, path) for result in found) if number is not None]


def _with_range(numbers: Sequence[float], decimals: int | None) -> str:
    if not numbers:
        return "-"
    shown = [_shown(number, decimals) for number in (median(numbers), min(numbers), max(numbers))]
    return shown[0] if shown[1] == shown[2] else f"{shown[0]} ({shown[1]}-{shown[2]})"


def _shown(number: float, decimals: int | None) -> str:
    # Without a given precision: whole numbers where fractions would be noise.
    places = decimals if decimals is not None else (0 if number == int(number) or number >= 100 else 2)
    return cell(number, 0, places).strip()
