# SPDX-License-Identifier: Apache-2.0
"""`python -m bench polling`: monitors poll groups that are at the cluster, through a gateway and directly."""

import argparse
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import figures
from bench.cluster import Cluster, Unprepared
from bench.machine import describe
from bench.page import write_part
from bench.polling.brokers import CountedKafka, counts, started
from bench.polling.fronting import Fronting, fronting
from bench.polling.monitor import POLLS, TIMEOUT_S, Monitor, Poll, Polled, Shape, connected
from bench.polling.tables import DIRECTLY, GATEWAY, Counts, Longest, Measured, Round, markdown
from bench.polling.watched import GATEWAY as TURNS_OF_GATEWAY
from bench.polling.watched import WORKER as TURNS_OF_WORKER
from bench.polling.watched import WatchedAll
from bench.procstat import process_cpu_s
from bench.servers import Groupkeeper
from bench.watched import Turn
from coordinator.workers.serve import GATEWAY_MODULE
from coordinator.workers.subprocesses import WORKER_MODULE

TOPIC: Final = "polled"
PARTITIONS: Final = 10
BROKERS: Final = "brokers"
NODES: Final = "nodes"


class Asked(NamedTuple):
    """How one way to the groups is asked, and the processes that work for it, by kind."""

    way: str
    monitor: Monitor
    pids: Mapping[str, Sequence[int]]

    def cpu_ms(self) -> dict[str, float]:
        """How much processor time they have used so far."""
        return {name: sum(map(process_cpu_s, some)) * 1e3 for name, some in self.pids.items()}

    def measured(self, poll: Poll) -> tuple[Round, Polled]:
        """One poll. Raises OSError and BadReply."""
        before = self.cpu_ms()
        polled = self.monitor.poll(poll)
        used = {name: after - before[name] for name, after in self.cpu_ms().items()}
        return Round(poll.name, self.way, polled.wall_ms, used), polled


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit status. Raises Unprepared, NotStarted, KafkaUnavailable."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as work:
        facts = describe(Path(work))
        measured = _measure(Path(work), options.groups, options.rounds)
    facts["command"] = f"`{shlex.join(['python', '-m', 'bench', 'polling', *arguments])}`"
    text = markdown(measured, facts)
    print(text)
    if options.write:
        write_part(options.write, text)
    return 1 if measured.taken_over else 0


def _measure(work: Path, groups: int, rounds: int) -> Measured:
    with started(work) as brokers:
        shape = _fill(brokers[0], groups)
        addresses = [broker.address for broker in brokers]
        took: list[Round] = []
        asked: list[Counts] = []
        with (
            connected(brokers[0].address, shape) as direct,
            fronting(Groupkeeper, work / "plain", addresses) as (_, front),
            connected(front.broker, shape) as through,
        ):
            at_brokers = {BROKERS: [broker.pid for broker in brokers]}
            ours = {GATEWAY: front.pids_of(GATEWAY_MODULE), NODES: front.pids_of(WORKER_MODULE)}
            for poll in POLLS:  # their JVMs have compiled what this takes
                direct.poll(poll)
            for _ in range(rounds):
                for poll in POLLS:
                    took.append(Asked(DIRECTLY, direct, at_brokers).measured(poll)[0])
                    counting = _Counting(brokers, front)
                    one, polled = Asked(GATEWAY, through, ours | at_brokers).measured(poll)
                    took.append(one)
                    asked.append(counting.counts(poll, polled))
            taken_over = front.taken_over()
        with fronting(WatchedAll, work / "watched", addresses) as (server, front):
            with connected(front.broker, shape) as through:
                polled_in = {poll.name: [through.poll(poll) for _ in range(rounds)] for poll in POLLS}
                taken_over += front.taken_over()
            server.stop()
            assert isinstance(server, WatchedAll)
            turns = list(_longest(server, polled_in))
    took.sort(key=lambda each: [poll.name for poll in POLLS].index(each.poll))
    asked.sort(key=lambda each: [poll.name for poll in POLLS].index(each.poll))
    return Measured(groups, PARTITIONS, rounds, took, asked, turns, taken_over)


def _fill(broker: CountedKafka, groups: int) -> Shape:
    """Commit offsets at the brokers. Raises Unprepared."""
    with Cluster(broker.address, timeout_s=TIMEOUT_S) as cluster:
        topic = cluster.ensure_topic(TOPIC, PARTITIONS)
        offsets = {partition: 1_000 + partition for partition in range(PARTITIONS)}
        names = [f"monitored-group-{number:04}" for number in range(groups)]
        cluster.commit_all(topic, dict.fromkeys(names, offsets))
    return Shape(topic, names, offsets)


class _Counting:
    """What nodes and brokers are asked from now on."""

    def __init__(self, brokers: Sequence[CountedKafka], front: Fronting) -> None:
        self._brokers = brokers
        self._front = front
        self._before = counts(brokers)
        self._located = front.located()

    def counts(self, poll: Poll, polled: Polled) -> Counts:
        """What they were asked for this poll. Raises Unprepared."""
        located = [now - then for now, then in zip(self._front.located(), self._located, strict=True)]
        asked = [now - then for now, then in zip(counts(self._brokers), self._before, strict=True)]
        return Counts(poll.name, polled.requests, located, asked)


def _longest(server: WatchedAll, polled: Mapping[str, Sequence[Polled]]) -> Iterator[Longest]:
    turns = {
        "gateway": server.turns_of(TURNS_OF_GATEWAY),
        "node": server.turns_of(TURNS_OF_WORKER),
    }
    for name, rounds in polled.items():
        for process, all_of_it in turns.items():
            mine = [turn for turn in all_of_it if _is_in(turn, rounds)]
            if not mine:
                raise Unprepared(f"no turn of the {process} was seen")
            cpu_s, wall_s = max(turn.cpu_s for turn in mine), max(turn.wall_s for turn in mine)
            yield Longest(name, process, cpu_s * 1e3, wall_s * 1e3)


def _is_in(turn: Turn, rounds: Sequence[Polled]) -> bool:
    return any(each.began <= turn.ended <= each.ended for each in rounds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench polling",
        description="What it takes to poll groups that are at the cluster, through a gateway and directly.",
    )
    parser.add_argument("--groups", type=int, default=2_000, metavar="N", help="at the cluster (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each poll (%(default)s)")
    parser.add_argument("--write", type=Path, nargs="?", const=figures.RESULTS, metavar="FILE",
                        help="write the tables there (bench/RESULTS.md)")  # fmt: skip
    return parser
