# SPDX-License-Identifier: Apache-2.0
"""What compaction costs those who are served meanwhile: fills one partition's log, and compacts it under commits.

The log has groups that commit in turn, again and again, so that most of its records are out of date. The turns of the
event loop are shown by the processor time of its thread, which other work on the machine does not lengthen, and by
the clock.
"""

import argparse
import asyncio
import struct
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from bench import load, scenarios
from bench.cluster import Cluster, Unprepared
from bench.load import Measured, Window
from bench.report import percentiles_ms
from bench.scenarios import SHAPES, set_stage
from bench.watched import Turn, WatchedNode
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC, partition_dir, segment_name
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, TopicOffsetCommits

OFFSETS_PARTITIONS: Final = 50  # the default
FULL: Final = Partition(0)  # the partition whose log is filled
GROUPS: Final = 1_000
TOPICS: Final = 10  # of each group
PARTITIONS: Final = 10  # of each topic; a commit is one batch with these
SEGMENT_BYTES: Final = 100 << 20
BASE_OFFSET: Final = struct.Struct(">q")  # a batch begins with it, and its checksum does not cover it

SCENARIO: Final = "commit"
LOOK_EVERY_S: Final = 0.5
TIMEOUT_S: Final = 1_800.0
METRICS_TIMEOUT_S: Final = 30.0
LONGEST_PAUSE: Final = "groupkeeper_loop_pause_seconds_max"
CLEANINGS: Final = "groupkeeper_log_cleanings_total"
FREED: Final = "groupkeeper_log_cleaning_freed_bytes_total"
PERCENTILES: Final = ("p50", "p99", "max")
UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Phase(NamedTuple):
    """A stretch of time and what was done in it."""

    name: str
    began: float  # time.monotonic()
    ended: float
    commits: int
    commit_s: float
    errors: Counter[str]
    longest_pause_s: float  # groupkeeper_loop_pause_seconds_max at the end


# --- the log ---


def make_log(data: Path, size_bytes: int, groups: int) -> int:
    """Write a log of about so many bytes, of so many groups; returns how many records it has."""
    names = (name for name in map("compacted-{:06d}".format, count()) if is_in_full(name))
    image, starts = _round(list(islice(names, groups)))
    place = partition_dir(data, OFFSETS_TOPIC, FULL)
    place.mkdir(parents=True)
    rounds = -(-size_bytes // len(image))
    rounds_in_segment = max(1, min(SEGMENT_BYTES // len(image), rounds // 2))
    offset = 0
    for first in range(0, rounds, rounds_in_segment):
        with (place / segment_name(Offset(offset))).open("wb") as file:
            for _ in range(first, min(first + rounds_in_segment, rounds)):
                for start in starts:
                    BASE_OFFSET.pack_into(image, start, offset)
                    offset += PARTITIONS
                file.write(image)
    return offset


def is_in_full(group: str) -> bool:
    """Whether a group's records are in the partition that is filled."""
    return partition_for(GroupId(group), OFFSETS_PARTITIONS) == FULL


def _round(groups: Sequence[str]) -> tuple[bytearray, list[int]]:
    """One commit of each group to each of its topics, and where each batch begins."""
    image, starts = bytearray(), []
    now_ms = time.time_ns() // 1_000_000
    values = {number: OffsetAndMetadata(Offset(number), -1, "", now_ms) for number in range(PARTITIONS)}
    for topic in range(TOPICS):
        for group in groups:
            builder = BatchBuilder()
            builder.append_offsets([TopicOffsetCommits(GroupId(group), f"topic-{topic}", values)])
            for batch in builder.build(Offset(0), LeaderEpoch(0), now_ms):
                starts.append(len(image))
                image += batch
    return image, starts


# --- the phases ---


def play(node: WatchedNode, seconds: float) -> Iterator[Phase]:
    """Let the node load, stand idle, commit, and commit while it compacts. Raises NotStarted and Unprepared."""
    node.start()
    began = time.monotonic()
    with Cluster(node.address, timeout_s=TIMEOUT_S) as cluster:
        cluster.wait_until_served(
            [next(filter(is_in_full, map(str, count())))],
            cluster.ensure_topic(scenarios.TOPIC, scenarios.PARTITIONS),
        )
        yield _without_commits(node, "loading", began)
        began = time.monotonic()
        time.sleep(seconds)
        yield _without_commits(node, "idle", began)
        yield _commit(node, cluster, "commits", lambda began: time.monotonic() - began >= seconds)
        node.clean()
        yield _commit(node, cluster, "and compaction", lambda _began: metric(node, CLEANINGS) > 0)


def _without_commits(node: WatchedNode, name: str, began: float) -> Phase:
    return Phase(name, began, time.monotonic(), 0, 0.0, Counter(), metric(node, LONGEST_PAUSE))


def _commit(node: WatchedNode, cluster: Cluster, name: str, is_over: Callable[[float], bool]) -> Phase:
    """Commit in a closed loop until `is_over(began)`."""
    shape = SHAPES[SCENARIO]
    stage = set_stage(cluster, SCENARIO, shape)

    async def run() -> Measured:
        playing = asyncio.ensure_future(load.run(stage.lanes, shape.depth, Window(timeout_s=TIMEOUT_S)))
        while not playing.done() and not await asyncio.to_thread(is_over, began):
            await asyncio.wait([playing], timeout=LOOK_EVERY_S)
        for lane in stage.lanes:
            lane.source.stop()
        return await playing

    began = time.monotonic()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        measured = runner.run(run())
    ended = time.monotonic()
    return Phase(
        name, began, ended, measured.requests, measured.seconds, measured.errors, metric(node, LONGEST_PAUSE)
    )


def metric(node: WatchedNode, name: str) -> float:
    """One number of a node's metrics. Raises Unprepared."""
    try:
        with urllib.request.urlopen(f"http://{node.metrics}/metrics", timeout=METRICS_TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
    except OSError as error:
        raise Unprepared(f"metrics: {error}") from error
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


# --- the report ---


def table(phases: Iterable[Phase], turns: Sequence[Turn]) -> Iterator[str]:
    """A line for each phase: its commits, and its turns by processor time and by the clock."""
    titles = "".join(f"{kind} {name}".rjust(11) for kind in ("CPU", "clock") for name in PERCENTILES)
    yield f"{'ms':16}{'commits/s':>10}{'turns':>9}{titles}{'pause':>9}"
    for phase in phases:
        mine = [turn for turn in turns if phase.began <= turn.ended <= phase.ended]
        rate = phase.commits / phase.commit_s if phase.commits else 0
        cells = _cells([turn.cpu_s for turn in mine]) + _cells([turn.wall_s for turn in mine])
        yield f"{phase.name:16}{rate:>10,.0f}{len(mine):>9,}{cells}{phase.longest_pause_s * 1000:>9,.0f}"


def _cells(seconds: Sequence[float]) -> str:
    found = percentiles_ms(seconds) or {}
    return "".join(f"{found.get(name, 0):>11,.1f}" for name in PERCENTILES)


def main(arguments: Sequence[str]) -> int:
    """The command line `python -m bench compaction`; returns the exit status. Raises NotStarted and Unprepared."""
    parser = argparse.ArgumentParser(prog="python -m bench compaction", description=__doc__)
    parser.add_argument("--bytes", type=_size, default="1G", help="of the log, e.g. 200M (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="idle, and of commits before (%(default)s)"
    )
    parser.add_argument("--groups", type=int, default=GROUPS, help="that commit to it (%(default)s)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where the data goes (a temporary directory)"
    )
    options = parser.parse_args(arguments)
    with WatchedNode("groupkeeper", Path(tempfile.mkdtemp(prefix="bench-", dir=options.data))) as node:
        records = make_log(node.data, options.bytes, options.groups)
        before = log_bytes(node)
        print(
            f"made a log of {records:,} records, {before:,} bytes, {options.groups * TOPICS * PARTITIONS:,} keys",
            flush=True,
        )
        phases = list(play(node, options.seconds))
        freed, cleanings = metric(node, FREED), metric(node, CLEANINGS)
        node.stop()
        print(*table(phases, node.turns()), sep="\n")
    compacting = phases[-1]
    print(
        f"compacted {cleanings:.0f} times in {compacting.ended - compacting.began:.1f} s: {freed:,.0f} bytes freed;"
        " `pause` is groupkeeper_loop_pause_seconds_max since the start"
    )
    errors = sum((phase.errors for phase in phases), Counter[str]())
    for kind, times in errors.most_common():
        print(f"{times} x {kind}")
    return 1 if errors else 0


def log_bytes(node: WatchedNode) -> int:
    """How large the log is on disk."""
    return sum(path.stat().st_size for path in partition_dir(node.data, OFFSETS_TOPIC, FULL).glob("*.log"))


def _size(text: str) -> int:
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    if not number.isdecimal() or not int(number):
        raise argparse.ArgumentTypeError(f"not a size: {text!r}")
    return int(number) * unit
