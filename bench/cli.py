# SPDX-License-Identifier: Apache-2.0
"""The command line: play scenarios against a running server, or compare servers."""

import argparse
import json
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from bench import (
    audit,
    browsing,
    closing,
    code,
    compaction,
    compare,
    figures,
    instructions,
    report,
    screenshots,
)
from bench.attack import cli as attack
from bench.cluster import Address, Unprepared
from bench.failover import cli as failover
from bench.figures import NoFigures
from bench.filling import Filling
from bench.forwarding import cli as forwarding
from bench.kafka import Kafka, KafkaUnavailable
from bench.lifecycle import measure_restart, measure_start
from bench.machine import describe
from bench.play import PLAYED, Options, play
from bench.polling import cli as polling
from bench.report import Result
from bench.servers import Groupkeeper, NotStarted, Server
from bench.wire import APIS

GOOD: Final = 0
ERRORS: Final = 1  # something was answered wrongly or not at all
MISUSED: Final = 2  # as argparse has it
NOT_PREPARED: Final = 3  # the server did not come to where measuring starts

STARTED: Final = ("start", "restart")  # these start and kill a server of their own
LABEL_WIDTH: Final = 15
REACH_TIMEOUT_S: Final = 10.0

DESCRIPTION: Final = f"""\
Play scenarios against a running server and print what they measured:

    {", ".join(PLAYED)}

or against one that is started for it:

    {", ".join(STARTED)}

`python -m bench compare --help`: play them side by side with a real Kafka.
`python -m bench audit --help`: audit a large log.
`python -m bench attack --help`: what clients that ask for much do to others.
`python -m bench browsing --help`: how soon the page for browsers is answered when there are many groups.
`python -m bench closing --help`: how long connections that close at once hold the event loop.
`python -m bench code --help`: count what the code itself is like.
`python -m bench compaction --help`: compact a large log under commits.
`python -m bench failover --help`: a gateway's process is killed while clients commit.
`python -m bench figures --help`: bring the figures of RESULTS.md into README.md.
`python -m bench forwarding --help`: what passes through a gateway, and what that costs.
`python -m bench instructions --help`: count what a request costs the compiled server.
`python -m bench polling --help`: monitors poll groups that are at the cluster, through a gateway.
`python -m bench screenshots --help`: pictures of the page for browsers.
Groups named bench-* are created and deleted again; the topic `bench` stays.
bench/README.md explains the numbers.

Exit status: 0 good, 1 errors were counted, 2 wrong usage, 3 the server could not be started or prepared.
"""


COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "attack": attack.main,
    "audit": audit.main,
    "browsing": browsing.main,
    "closing": closing.main,
    "code": code.main,
    "compaction": compaction.main,
    "compare": compare.main,
    "failover": failover.main,
    "figures": figures.main,
    "forwarding": forwarding.main,
    "instructions": instructions.main,
    "polling": polling.main,
    "screenshots": screenshots.main,
}


class Misused(Exception):
    """Flags that mean nothing for the scenarios that were named."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit status."""
    # SIGTERM ends as an exception, so that servers that we started are ended too.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        if arguments and arguments[0] in COMMANDS:
            return COMMANDS[arguments[0]](arguments[1:])
        return _play_all(_parser().parse_args(arguments))
    except (Misused, Unprepared, NotStarted, KafkaUnavailable, NoFigures, ProcessLookupError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return MISUSED if isinstance(error, Misused) else NOT_PREPARED


def _terminated(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _play_all(options: argparse.Namespace) -> int:
    if not set(options.scenarios) & set(STARTED):
        _refuse_flags_of_started(options)
    if set(options.scenarios) & set(PLAYED):
        _reach(options.bootstrap)
    chosen = Options(
        bootstrap=options.bootstrap,
        server_pids=options.server_pid,
        duration_s=options.duration,
        warmup_s=options.warmup,
        requests=options.requests,
        changes={name: getattr(options, name) for name in ("connections", "depth", "groups", "partitions")},
        caps=dict(options.cap),
        prefix=options.prefix,
    )
    results: list[Result] = []
    print(report.heading("scenario", LABEL_WIDTH))
    for scenario in options.scenarios:
        result = _start(scenario, options) if scenario in STARTED else play(scenario, chosen)
        print(report.line(scenario, LABEL_WIDTH, result), flush=True)
        results.append(result)
    if options.json:
        written = {"machine": describe(Path(tempfile.gettempdir())), "results": results}
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    return ERRORS if any(result["errors"] for result in results) else GOOD


def _refuse_flags_of_started(options: argparse.Namespace) -> None:
    given = [f"--{name}" for name in ("server", "set", "data") if getattr(options, name)]
    if given:
        raise Misused(
            f"{', '.join(given)}: only for {' and '.join(STARTED)}, which start a server of their own; "
            f"{', '.join(options.scenarios)} is played against the one at --bootstrap"
        )


def _reach(bootstrap: Address) -> None:
    """Raises Unprepared where no server listens; wait for one that starts before."""
    try:
        socket.create_connection(bootstrap, REACH_TIMEOUT_S).close()
    except OSError as error:
        reason = error.strerror or error
        raise Unprepared(
            f"no server at {bootstrap} ({reason}): start one, or say where with --bootstrap"
        ) from error


def _start(scenario: str, options: argparse.Namespace) -> Result:
    given = Filling()
    filling = Filling(options.groups or given.groups, options.partitions or given.partitions)
    kinds: dict[str, Callable[[Path], Server]] = {
        "groupkeeper": lambda work: Groupkeeper("groupkeeper", work, dict(options.set)),
        "kafka": lambda work: Kafka("kafka", work, dict(options.set)),
    }
    with kinds[options.server or "groupkeeper"](
        Path(tempfile.mkdtemp(prefix="bench-", dir=options.data))
    ) as server:
        return measure_start(server) if scenario == "start" else measure_restart(server, filling)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="+", choices=[*PLAYED, *STARTED], metavar="SCENARIO")
    parser.add_argument("--bootstrap", type=Address.parse, default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument(
        "--server-pid",
        type=int,
        action="append",
        default=[],
        metavar="PID",
        help="count its CPU (repeatable)",
    )
    parser.add_argument(
        "--duration", type=float, default=5.0, metavar="S", help="measured time (%(default)s)"
    )
    parser.add_argument(
        "--warmup", type=float, default=1.0, metavar="S", help="the same load before (%(default)s)"
    )
    parser.add_argument("--requests", type=int, metavar="N", help="this many instead of a time, no warm-up")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    shape = parser.add_argument_group("other numbers than the scenario's own")
    for name in ("connections", "depth", "groups", "partitions"):
        shape.add_argument(f"--{name}", type=int, metavar="N")
    shape.add_argument("--prefix", default="bench", help="how group names begin (%(default)s)")
    shape.add_argument("--cap", type=_cap, action="append", default=[], metavar="API=VERSION",
                       help="no higher version, e.g. OffsetCommit=9 (repeatable)")  # fmt: skip
    starts = parser.add_argument_group("for start and restart")
    starts.add_argument("--server", choices=["groupkeeper", "kafka"], help="which one (groupkeeper)")
    starts.add_argument("--set", type=_key_value, action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of that server (repeatable)")  # fmt: skip
    starts.add_argument(
        "--data", type=Path, metavar="DIR", help="where its data goes (a temporary directory)"
    )
    return parser


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"not KEY=VALUE: {text!r}")
    return key, value


def _cap(text: str) -> tuple[str, int]:
    name, value = _key_value(text)
    if name not in {api.name for api in APIS} or not value.isdecimal():
        raise argparse.ArgumentTypeError(f"not API=VERSION: {text!r}")
    return name, int(value)
