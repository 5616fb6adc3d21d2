# SPDX-License-Identifier: Apache-2.0
"""How fast a log is audited: makes one of many records, then runs `groupkeeper audit` over it.

The log has groups of three members with ten partitions each, which commit in turn, all in their right partitions of
the log; every two hundredth batch is a group's metadata.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.installed import groupkeeper
from bench.procstat import tree_cpu_s, tree_rss_bytes
from bench.servers import REPOSITORY
from protocol.newtypes import GroupId, LeaderEpoch, MemberId, Offset, Partition
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC, partition_dir, segment_name
from storage.format.batch import BatchBuilder
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    TopicOffsetCommits,
)

GROUPS_PER_PARTITION: Final = 20
TOPIC_PARTITIONS: Final = 10
METADATA_EVERY: Final = 200  # batches
SEGMENT_BYTES: Final = 100 << 20
SAMPLE_S: Final = 0.2


def make_log(directory: Path, records: int, partitions: int) -> int:
    """Write a log of so many records; returns its bytes."""
    groups: dict[int, list[str]] = {number: [] for number in range(partitions)}
    number = 0
    while min(map(len, groups.values())) < GROUPS_PER_PARTITION:
        name = f"consumer-group-{number:06d}"
        groups[partition_for(GroupId(name), partitions)].append(name)
        number += 1
    chosen = [names[:GROUPS_PER_PARTITION] for names in groups.values()]
    fill = partial(_fill, directory, records // partitions)
    with ProcessPoolExecutor() as pool:
        return sum(pool.map(fill, range(partitions), chosen))


def _fill(directory: Path, records: int, partition: Partition, groups: Sequence[str]) -> int:
    place = partition_dir(directory, OFFSETS_TOPIC, partition)
    place.mkdir(parents=True)
    written = size = 0
    file = (place / segment_name(Offset(0))).open("wb")
    for offset, batch in _batches(records, groups):
        if size + len(batch) > SEGMENT_BYTES:
            file.close()
            file = (place / segment_name(Offset(offset))).open("wb")
            size = 0
        size += file.write(batch)
        written += len(batch)
    file.close()
    return written


def _batches(records: int, groups: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Base offset and bytes of each batch; the last hours' commits, one a second for each group."""
    offset = turn = 0
    first_ms = int(time.time() * 1000) - 1000 * records // (TOPIC_PARTITIONS * len(groups))
    while offset < records:
        group = groups[turn % len(groups)]
        now_ms = first_ms + 1000 * (turn // len(groups))
        builder = BatchBuilder()
        if turn % METADATA_EVERY < len(groups) and turn // METADATA_EVERY % 10 == 0:
            builder.append_in_one_batch([_metadata(group, turn // METADATA_EVERY, now_ms)])
        values = {
            number: OffsetAndMetadata(Offset(turn), -1, "", now_ms)
            for number in range(min(TOPIC_PARTITIONS, records - offset - builder.count))
        }
        if values:
            builder.append_offsets(
                [TopicOffsetCommits(GroupId(group), f"topic-{turn % len(groups) % 7}", values)]
            )
        for batch in builder.build(Offset(offset), LeaderEpoch(0), now_ms):
            yield offset, batch
        offset += builder.count
        turn += 1


def _metadata(group: str, generation: int, now_ms: int) -> GroupMetadataRecord:
    members = tuple(
        MemberValue(
            MemberId(f"consumer-{number}-{group}"),
            None,
            f"consumer-{number}",
            "/10.0.0.1",
            300_000,
            45_000,
            b"s" * 40,
            b"a" * 60,
        )
        for number in range(3)
    )
    return GroupMetadataRecord(
        GroupId(group),
        GroupMetadataValue("consumer", generation, "range", members[0].member_id, now_ms, members),
    )


def audit(log_dir: Path, out: Path, master: str) -> dict[str, Any]:
    """Run the command; returns its summary with what it took. Raises RuntimeError when it could not run."""
    command = [*groupkeeper(), "audit", "--log-dirs", str(log_dir), "--out", str(out), "--master", master]
    started = time.monotonic()
    cpu_s, rss_bytes = 0.0, 0
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        while process.poll() is None:
            try:
                cpu_s = max(cpu_s, tree_cpu_s(process.pid))
                rss_bytes = max(rss_bytes, tree_rss_bytes(process.pid))
            except ProcessLookupError:
                break
            time.sleep(SAMPLE_S)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"the audit ended with status {process.returncode}")
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return {**summary, "wall_s": time.monotonic() - started, "cpu_s": cpu_s, "rss_mib": rss_bytes / (1 << 20)}


def main(arguments: Sequence[str]) -> int:
    """The command line `python -m bench audit`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench audit", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000, help="in the log (%(default)s)")
    parser.add_argument("--partitions", type=int, default=100, help="of the log (%(default)s)")
    parser.add_argument("--master", default="local[2]", help="Spark's (%(default)s)")
    parser.add_argument(
        "--data", type=Path, help="where the log goes (a temporary directory); used again if it is there"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as work:
        log_dir = options.data or Path(work, "log")
        if not log_dir.exists():
            started = time.monotonic()
            size = make_log(log_dir, options.records, options.partitions)
            print(
                f"made {options.records:,} records, {size:,} bytes, in {time.monotonic() - started:.1f} s",
                flush=True,
            )
        result = audit(log_dir, Path(work, "out"), options.master)
    print(
        f"{result['records']:,} records in {result['wall_s']:.1f} s:"
        f" {result['records'] / result['wall_s']:,.0f} records/s;"
        f" {result['cpu_s']:.1f} s of CPU, {result['rss_mib']:,.0f} MiB at most, {len(result['findings'])} findings"
    )
    return 0 if result["records"] == options.records else 1
