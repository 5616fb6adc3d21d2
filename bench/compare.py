# SPDX-License-Identifier: Apache-2.0
"""Groupkeeper beside a real Kafka on one machine in one run: the servers take turns at every scenario."""

import argparse
import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench import figures, report, results
from bench.cluster import Unprepared
from bench.filling import Filling
from bench.kafka import Kafka, KafkaUnavailable
from bench.lifecycle import IDLE_S, measure_restart, measure_start
from bench.machine import describe
from bench.page import write_part
from bench.play import GROUPS
from bench.procstat import filesystem_type
from bench.report import Result
from bench.results import Runs
from bench.scenarios import SHAPES
from bench.servers import REPOSITORY, Groupkeeper, NotStarted, Server

KAFKA: Final = "Kafka"
MAKERS: Final[dict[str, tuple[str, Callable[[str, Path], Server]]]] = {
    "kafka": (KAFKA, Kafka),
    "os": ("Groupkeeper, log.flush=os", lambda name, work: Groupkeeper(name, work, {"log.flush": "os"})),
    "always": (
        "Groupkeeper, log.flush=always",
        lambda name, work: Groupkeeper(name, work, {"log.flush": "always"}),
    ),
}
START: Final = "start"
RESTART: Final = "restart"
ALL: Final = (*SHAPES, GROUPS, START, RESTART)
LABEL_WIDTH: Final = 46
HEAT: Final = ("mixed", "commit", "fetch")  # before anything is measured, so that every server is warm
PLAY_TIMEOUT_S: Final = 900.0

DESCRIPTION: Final = """\
Start Groupkeeper (log.flush=os and log.flush=always) and a real Kafka, play the scenarios with each in turn,
and print the median of the runs. CPU is user and system time of the server with its children, per 100,000
requests. Kafka needs Java 17 and Maven; without them it is left out. For figures to publish leave the machine
alone meanwhile.
"""


def main(arguments: Sequence[str]) -> int:
    """Run `python -m bench compare`; returns 0, or 1 after errors. Raises NotStarted, Unprepared."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(ALL):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))} (there are: {', '.join(ALL)})")
    if unknown := set(options.servers) - MAKERS.keys():
        parser.error(f"no such server: {', '.join(sorted(unknown))} (there are: {', '.join(MAKERS)})")
    runs = Runs()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.data) as work:
        machine = describe(Path(work))
        if filesystem_type(Path(work)) == "tmpfs":
            print("the data is on a tmpfs, where fsync costs nothing: choose another --data", file=sys.stderr)
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(server) for server in _servers(options.servers, Path(work))]
            print(report.heading("", LABEL_WIDTH))
            _alternate(options, servers, runs, Path(work))
    command = shlex.join(["python", "-m", "bench", "compare", *arguments])
    text = results.markdown(runs, {**machine, "command": f"`{command}`"}, reference=KAFKA)
    print(f"\n{text}")
    if options.write:
        write_part(options.write, text)
        if options.write == figures.RESULTS:
            figures.renew()
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine, "command": command, "runs": runs.plain()}, indent=1)
        )
    return 1 if runs.errors() else 0


def _servers(names: Sequence[str], work: Path) -> Iterator[Server]:
    for name in names:
        title, make = MAKERS[name]
        try:
            yield make(title, work / name)
        except KafkaUnavailable as error:
            print(f"without Kafka: {error}", file=sys.stderr)


def _alternate(options: argparse.Namespace, servers: Sequence[Server], runs: Runs, work: Path) -> None:
    if loads := [name for name in options.only if name in SHAPES]:
        _alternate_loads(options, loads, servers, runs, work)
    filling = Filling(groups=options.restart_groups)
    fresh: dict[str, Callable[[Server], Result]] = {
        GROUPS: lambda server: _play_fresh(options, server, work),
        START: lambda server: measure_start(server, options.idle),
        RESTART: lambda server: measure_restart(server, filling),
    }
    for scenario in (name for name in options.only if name in fresh):
        for _ in range(options.runs if scenario == START else 1):
            for server in servers:
                _record(runs, scenario, server, _survive(server, scenario, fresh[scenario]))


def _survive(server: Server, scenario: str, measure: Callable[[Server], Result]) -> Result:
    """A failure to start or prepare is one server's result; it does not take the others' with it."""
    try:
        return measure(server)
    except (NotStarted, Unprepared) as error:
        print(f"{scenario} {server.name}: {error}", file=sys.stderr)
        server.kill()
        return _failed(scenario, str(error).partition("\n")[0])


def _failed(scenario: str, reason: str) -> Result:
    return {"scenario": scenario, "errors": 1, "error_kinds": {reason: 1}}


def _alternate_loads(
    options: argparse.Namespace, loads: Sequence[str], servers: Sequence[Server], runs: Runs, work: Path
) -> None:
    for server in servers:
        server.start()
        _heat(options, server, work)
    for scenario in loads:
        for number in range(options.runs):
            for server in servers:
                # Only the first run needs the whole warm-up: the servers stay up between runs.
                warmup_s = options.warmup if number == 0 else min(1.0, options.warmup)
                _record(runs, scenario, server, _play(scenario, server, work, warmup_s, options.duration))
    for server in servers:
        server.stop()


def _heat(options: argparse.Namespace, server: Server, work: Path) -> None:
    if not options.warmup:
        return
    for scenario in HEAT:
        _play(scenario, server, work, options.warmup, options.warmup)


def _record(runs: Runs, scenario: str, server: Server, result: Result) -> None:
    runs.add(scenario, server.name, result)
    print(report.line(f"{scenario:14}{server.name}", LABEL_WIDTH, result), flush=True)


def _play_fresh(options: argparse.Namespace, server: Server, work: Path) -> Result:
    """The scenario `groups` on a server with nothing else in it, so that memory per group means something."""
    server.reset()
    server.start()
    _heat(options, server, work)
    result = _play(GROUPS, server, work, 0.0, 0.0)
    server.stop()
    return result


def _play(scenario: str, server: Server, work: Path, warmup_s: float, duration_s: float) -> Result:
    """Play in a process of its own, so that the driver is as fresh in each run."""
    written = work / "result.json"
    written.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench", scenario, "--bootstrap", str(server.address)]
    command += ["--server-pid", str(server.pid), "--json", str(written)]
    command += ["--warmup", str(warmup_s), "--duration", str(duration_s)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PLAY_TIMEOUT_S
    )
    if not written.exists():
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return _failed(scenario, reason)
    found: Result = json.loads(written.read_text())["results"][0]
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench compare",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ",".join(ALL)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each scenario (%(default)s)")
    parser.add_argument("--only", type=_list, default=list(ALL), metavar="A,B", help=f"some of {names}")
    parser.add_argument("--servers", type=_list, default=list(MAKERS), metavar="A,B",
                        help=f"some of {','.join(MAKERS)} (all)")  # fmt: skip
    parser.add_argument("--duration", type=float, default=5.0, metavar="S", help="of each run (%(default)s)")
    parser.add_argument("--warmup", type=float, default=8.0, metavar="S",
                        help="before each scenario, and at the start three times (%(default)s)")  # fmt: skip
    parser.add_argument("--idle", type=float, default=IDLE_S, metavar="S",
                        help="wait of `start` before the look at the memory (%(default)s)")  # fmt: skip
    parser.add_argument("--restart-groups", type=int, default=10_000, metavar="N",
                        help="groups that `restart` fills, 100 offsets each (%(default)s)")  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where the servers' data goes (a temporary directory)"
    )
    parser.add_argument("--write", type=Path, nargs="?", const=figures.RESULTS, metavar="FILE",
                        help="write the tables there (bench/RESULTS.md, and its figures into README.md)")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run's result there")
    return parser


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
