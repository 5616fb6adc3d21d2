# SPDX-License-Identifier: Apache-2.0
"""`python -m bench forwarding`: all of it, in one run."""

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import figures
from bench.forwarding import producing, tools
from bench.forwarding.asking import ask
from bench.forwarding.frames import LARGE, fill
from bench.forwarding.kroxylicious import kroxylicious
from bench.forwarding.streaming import stream
from bench.forwarding.tables import Measured, markdown
from bench.forwarding.turns import feel
from bench.forwarding.ways import HAPROXY, open_ways
from bench.machine import describe
from bench.page import write_part


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit status. Raises Unprepared, NotStarted, KafkaUnavailable."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as work:
        facts = describe(Path(work))
        measured = _measure(options, Path(work))
    facts["command"] = f"`{shlex.join(['python', '-m', 'bench', 'forwarding', *arguments])}`"
    text = markdown(measured, facts, options.runs)
    print(text)
    if options.write:
        write_part(options.write, text)
        if options.write == figures.RESULTS:
            figures.renew()
    return 0


def _measure(options: argparse.Namespace, work: Path) -> Measured:
    with ExitStack() as stack:
        broker, ways = stack.enter_context(open_ways(work))
        if options.kroxylicious:
            ways.append(stack.enter_context(kroxylicious(work, broker.address)))
        fill(broker.address, options.records)
        times = [way for _ in range(options.runs) for way in ways]
        fetched = [stream(way, options.seconds) for way in times]
        asked = ask(ways, options.requests)
        sent = [producing.produce(broker, way, options.seconds) for way in times]
        consumed = [tools.consume(way, options.records) for way in times]
        produced = [tools.produce(broker, way, options.records) for way in times]
        haproxy = next(way for way in ways if way.name == HAPROXY)
        felt = feel(broker.address, haproxy, work, options.seconds, options.runs)
    return Measured(fetched, sent, consumed, produced, asked, felt)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench forwarding",
        description="What a gateway costs, beside haproxy and no proxy, and what the coordinator feels of it.",
    )
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="over all ways (%(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="S",
                        help="of fetching and producing as much as goes, each time (%(default)s)")  # fmt: skip
    parser.add_argument("--requests", type=int, default=2_000, metavar="N",
                        help="of one record, on each way (%(default)s)")  # fmt: skip
    parser.add_argument("--records", type=int, default=200_000, metavar="N",
                        help=f"of {LARGE}, and for Kafka's own tools each time (%(default)s)")  # fmt: skip
    parser.add_argument("--kroxylicious", action="store_true",
                        help="beside it, too, which listens on all interfaces of this machine")  # fmt: skip
    parser.add_argument("--write", type=Path, nargs="?", const=figures.RESULTS, metavar="FILE",
                        help="write the tables there (bench/RESULTS.md)")  # fmt: skip
    return parser
