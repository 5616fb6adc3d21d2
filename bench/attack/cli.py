# SPDX-License-Identifier: Apache-2.0
"""`python -m bench attack`: each attack on a node of its own, and what it did to others.

`python -m bench attack gateway --help`: a mixed attack on a gateway.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from bench.attack.flood import Attackers, Member
from bench.attack.frames import Size
from bench.attack.gateway import cli as gateway
from bench.attack.node import AttackedNode, fill
from bench.attack.scenarios import all_scenarios
from bench.servers import REPOSITORY

HEADING: Final = (
    f"{'attack':22} {'sent':>9} {'answers':>8} {'longest':>9} {'closed':>7} {'turn CPU':>9} {'turn':>8} "
    f"{'p50':>8} {'p99':>8} {'max':>8} {'peak RSS':>9}"
)
SETTLE_S: Final = 1.0
GATEWAY: Final = "gateway"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit status."""
    if arguments[:1] == [GATEWAY]:
        return gateway.main(arguments[1:])
    options = _parser().parse_args(arguments)
    scenarios = all_scenarios()
    size = Size(options.groups, options.topics)
    print(f"{size.groups:,} groups, {size.topics:,} topics, {options.connections} connections for "
          f"{options.seconds:g} s. Turn: the longest of the event loop; p50, p99 and max: of a heartbeat.")  # fmt: skip
    print(HEADING, flush=True)
    for name in options.scenarios or scenarios:
        with (
            tempfile.TemporaryDirectory(prefix="attack-") as work,
            AttackedNode(
                Path(work), options.python, options.tree.resolve(), options.loop, dict(options.set)
            ) as node,
        ):
            print(_attack(name, scenarios[name], node, size, options), flush=True)
    return 0


def _attack(
    name: str, scenario: ModuleType, node: AttackedNode, size: Size, options: argparse.Namespace
) -> str:
    node.start()
    fill(node.address, size)
    member = Member(node.address)
    member.beat_for(SETTLE_S)
    member.latencies_s.clear()
    frames = scenario.frames(size)
    attackers = Attackers(node.address, frames, options.connections)
    began = time.monotonic()
    attackers.start()
    member.beat_for(options.seconds)
    ended = time.monotonic()
    attackers.stop()
    peak_bytes = node.peak_rss_bytes()
    member.close()
    node.stop()
    turns = [turn for turn in node.turns() if began <= turn.ended <= ended]
    took = sorted(member.latencies_s)
    return (
        f"{name:22} {_bytes(sum(map(len, frames))):>9} {attackers.answers:>8,} "
        f"{_bytes(attackers.answer_bytes_max):>9} {attackers.closed:>7} "
        f"{_ms(max(turn.cpu_s for turn in turns)):>9} {_ms(max(turn.wall_s for turn in turns)):>8} "
        f"{_ms(took[len(took) // 2]):>8} {_ms(took[len(took) * 99 // 100]):>8} {_ms(took[-1]):>8} "
        f"{_bytes(peak_bytes):>9}"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def _bytes(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("KB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench attack", description=__doc__)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="ATTACK",
        help=f"some of {', '.join(all_scenarios())} (all)",
    )
    parser.add_argument(
        "--groups", type=int, default=20_000, metavar="N", help="groups there are (%(default)s)"
    )
    parser.add_argument(
        "--topics", type=int, default=10_000, metavar="N", help="topics there are (%(default)s)"
    )
    parser.add_argument("--connections", type=int, default=4, metavar="N", help="that attack (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=4.0, metavar="S", help="of each attack (%(default)s)"
    )
    parser.add_argument(
        "--loop", choices=("asyncio", "uvloop"), default="asyncio", help="the node's event loop (%(default)s)"
    )
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the node's interpreter")
    parser.add_argument("--tree", type=Path, default=REPOSITORY, metavar="DIR", help="where its sources are")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of the node (repeatable)")  # fmt: skip
    return parser


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"not KEY=VALUE: {text!r}")
    return key, value
