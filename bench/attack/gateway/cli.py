# SPDX-License-Identifier: Apache-2.0
"""`python -m bench attack gateway`: a mixed attack on a gateway, its memory, and what somebody else feels of it."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench import figures
from bench.attack.gateway import attacker
from bench.attack.gateway.attacker import ANSWERS, CLOSED, CONNECTIONS, KINDS, LATE, SENT, TURNS
from bench.attack.gateway.client import COMMIT, HEARTBEAT, Client
from bench.attack.gateway.memory import Memory
from bench.attack.gateway.stage import Stage, fill, set_up
from bench.cluster import Unprepared
from bench.machine import describe
from bench.page import facts_table, write_part
from bench.report import percentiles_ms
from bench.servers import REPOSITORY, tied_to_us

MIB: Final = 1 << 20
ATTACKERS: Final = 3
QUIET_S: Final = 5.0
"""Of the client alone, before the attack."""
AFTER_S: Final = 60.0
GRACE_S: Final = 60.0
"""How long attackers may take to end what they have begun."""
MOST_BYTES: Final = 512 * MIB
BACK_WITHIN: Final = 0.2
GATEWAY: Final = "gateway"
NODE: Final = "node"
HEAD: Final = """\
# A gateway under attack

Several processes send the mix that bench/README.md describes to a gateway before a real Kafka, while a well-behaved
client goes on with its heartbeats and commits.
"""


class Resident(NamedTuple):
    """The memory of one process."""

    start_bytes: int
    most_bytes: int
    after_bytes: int

    @property
    def share(self) -> float:
        """What it has a minute afterwards, of what it had at the start."""
        return self.after_bytes / self.start_bytes


class Outcome(NamedTuple):
    """What the attack did."""

    resident: dict[str, Resident]
    ended: list[str]
    """Processes that did not last."""
    closed: dict[str, int]
    sent: dict[str, Counter[str]]
    latencies_s: dict[str, list[float]]
    errors: Counter[str]


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit status. Raises Unprepared, NotStarted, KafkaUnavailable."""
    options = _parser().parse_args(arguments)
    kinds = options.kinds or list(KINDS)
    begins = (
        f"{ATTACKERS} attackers for {options.seconds:g} s, seed {options.seed}, "
        f"connections.unsent.max.bytes={options.unsent}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as work,
        set_up(Path(work), options.unsent) as stage,
    ):
        facts = describe(Path(work))
        print(begins, flush=True)
        outcome = _attack(stage, options, kinds)
    found = faults(outcome)
    shown = [*table(outcome), *([f"failed: {'; '.join(found)}"] if found else [])]
    print(*shown, sep="\n")
    if options.write:
        facts["command"] = f"`{shlex.join(['python', '-m', 'bench', 'attack', 'gateway', *arguments])}`"
        write_part(options.write, markdown([begins, *shown], facts))
    return 1 if found else 0


def _attack(stage: Stage, options: argparse.Namespace, kinds: Sequence[str]) -> Outcome:
    topic = fill(stage)
    pids = {GATEWAY: stage.gateway_pid, NODE: stage.node_pid}
    with Client(stage.broker, topic) as client, Memory(pids) as memory:
        time.sleep(QUIET_S)
        start = {name: memory.last_bytes(name) for name in pids}
        began = time.monotonic()
        with _attackers(stage, options.seed, options.seconds, kinds) as processes:
            sent = _counts(processes, options.seconds + GRACE_S)
        ended = time.monotonic()
        time.sleep(options.after)
        closed = stage.closed()
    resident = {
        name: Resident(start[name], memory.most_bytes(name, began, ended), memory.last_bytes(name))
        for name in pids
    }
    latencies_s = {api: client.latencies_s(api, began, ended) for api in (HEARTBEAT, COMMIT)}
    return Outcome(resident, memory.ended, closed, sent, latencies_s, client.errors)


@contextmanager
def _attackers(
    stage: Stage, seed: int, seconds: float, kinds: Sequence[str]
) -> Iterator[list[subprocess.Popen[str]]]:
    """The attackers' processes, each with a seed of its own; those that have not ended are killed."""
    command = [sys.executable, "-m", attacker.__name__, str(stage.broker), str(stage.node)]
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(ATTACKERS):
            mine = [*command, f"{seed}-{number}", str(seconds), *kinds]
            processes.append(
                subprocess.Popen(
                    tied_to_us(mine),
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=REPOSITORY,
                    start_new_session=True,  # on Ctrl-C they end with us, without words of their own
                )
            )
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _counts(processes: Sequence[subprocess.Popen[str]], seconds: float) -> dict[str, Counter[str]]:
    """What the attackers have counted, by kind, once they have ended. Raises Unprepared."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    deadline = time.monotonic() + seconds
    for process in processes:
        try:
            said, _ = process.communicate(timeout=deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            raise Unprepared("an attacker does not end") from None
        if process.returncode:
            raise Unprepared("an attacker has failed")
        for kind, counted in json.loads(said).items():
            counts[kind].update(counted)
    return {kind: counted for kind, counted in counts.items() if counted}


# --- the report ---


def faults(outcome: Outcome) -> list[str]:
    """What must not be."""
    gateway = outcome.resident[GATEWAY]
    found = [f"the {name}'s process has ended" for name in outcome.ended]
    if gateway.most_bytes >= MOST_BYTES:
        found.append(f"the gateway had {_mib(gateway.most_bytes)}, which is not below {_mib(MOST_BYTES)}")
    if abs(gateway.share - 1) > BACK_WITHIN:
        found.append(f"a minute afterwards it had {gateway.share:.0%} of what it had at the start")
    if outcome.errors:
        found.append(f"the well-behaved client got {outcome.errors.total()} errors")
    return found


def table(outcome: Outcome) -> Iterator[str]:
    """What attackers sent, the memory, what the gateway closed, and what the client waited for."""
    yield (
        f"{'attack':16} {'turns':>6} {'connections':>11} {'sent':>9} {'answers':>8} {'closed':>7} {'late':>5}"
    )
    for kind, count in outcome.sent.items():
        yield (
            f"{kind:16} {count[TURNS]:>6,} {count[CONNECTIONS]:>11,} {count[SENT]:>9,} {count[ANSWERS]:>8,} "
            f"{count[CLOSED]:>7,} {count[LATE]:>5,}"
        )
    yield f"{'RSS':16} {'start':>9} {'most':>9} {'a minute after':>14}"
    for name, each in outcome.resident.items():
        yield (
            f"{name:16} {_mib(each.start_bytes):>9} {_mib(each.most_bytes):>9} {_mib(each.after_bytes):>9} "
            f"{each.share:>4.0%}"
        )
    yield f"closed by the gateway: {_named(outcome.closed)}"
    yield f"{'client':16} {'requests':>9} {'p50':>10} {'p99':>10} {'max':>10}"
    for api, latencies_s in outcome.latencies_s.items():
        took = percentiles_ms(latencies_s) or {}
        cells = " ".join(f"{took.get(name, 0.0):>7.1f} ms" for name in ("p50", "p99", "max"))
        yield f"{api:16} {len(latencies_s):>9,} {cells}"
    yield f"errors: {_named(outcome.errors)}"


def markdown(shown: Sequence[str], facts: Mapping[str, str]) -> str:
    """The part of RESULTS.md with these lines."""
    return "\n".join([HEAD, facts_table(facts), "", "```text", *shown, "```"])


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} x {name}" for name, count in counts.items()) or "none"


def _mib(count: int) -> str:
    return f"{count / MIB:.1f} MiB"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench attack gateway", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", choices=[*KINDS, []], metavar="KIND", help=f"some of {', '.join(KINDS)} (all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=600.0, metavar="S", help="of the attack (%(default)s)"
    )
    parser.add_argument(
        "--after",
        type=float,
        default=AFTER_S,
        metavar="S",
        help="until it is looked what memory is left (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is sent (%(default)s)")
    parser.add_argument("--unsent", type=int, default=256 * MIB, metavar="BYTES",
                        help="the gateway's connections.unsent.max.bytes (%(default)s)")  # fmt: skip
    parser.add_argument("--write", type=Path, nargs="?", const=figures.RESULTS, metavar="FILE",
                        help="write the outcome there (bench/RESULTS.md)")  # fmt: skip
    return parser
