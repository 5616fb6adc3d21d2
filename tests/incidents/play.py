# SPDX-License-Identifier: Apache-2.0
"""Incidents, played on real nodes: `python -m tests.incidents.play [NAME...]` records them anew.

All at once, they take three minutes. A full disk needs root, for a small file system of its own.
"""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Final

from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC
from tests.incidents.recording import Recording
from tests.partitions.disk import WRITES
from tests.partitions.running import PARTITIONS, Running, node
from tests.support.command import groupkeeper
from tests.support.raw import RawConnection, create_topic, standalone_commit
from tests.support.service import Service

BEFORE: Final = 8
AFTER: Final = 30
TOPIC: Final = "t"


async def full_disk(work: Path) -> Recording:
    """Nothing can be written for ten minutes; then there is room again."""
    disk = work / "disk"
    disk.mkdir()
    await asyncio.to_thread(run, "mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", disk)
    try:
        async with running_service(disk) as service:
            recording = recording_of(service)
            commits = committer(service)
            await recording.phase("before", BEFORE, commits)
            filler = disk / "filler"
            fill(filler)
            while not await commits():
                pass  # what the journal has in store
            await recording.phase("during", 60, commits)
            filler.unlink()
            await recording.phase("after", AFTER, commits)
            return recording
    finally:
        await asyncio.to_thread(run, "umount", "--lazy", disk)


def run(*command: str | Path) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True)


def fill(path: Path) -> None:
    """Take all room that there is."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017 - no test


async def damaged_partition(work: Path) -> Recording:
    """A node starts with a damaged partition; it is stopped, the partition is mended, and it starts again."""
    async with running_service(work) as service:
        recording = recording_of(service)
        commits = committer(service)
        await recording.phase("before", BEFORE, commits)
        await asyncio.to_thread(service.terminate)
        segment = (
            service.data_dir / f"{OFFSETS_TOPIC}-{partition_for(GroupId('group-0'), 50)}" / f"{0:020}.log"
        )
        with segment.open("r+b") as file:
            file.seek(80)
            file.write(b"\xfe\xfe")
        await asyncio.to_thread(service.start)
        await recording.phase("during", 20, commits)
        await asyncio.to_thread(service.terminate)
        repair = ("log", "repair", "--execute", "--partition", str(partition_for(GroupId("group-0"), 50)))
        done = await asyncio.to_thread(groupkeeper, *repair, "--data-dir", str(service.data_dir))
        assert done.returncode == 0, done.stderr
        await asyncio.to_thread(service.start)
        await recording.phase("after", AFTER, commits)
        return recording


async def long_pause(work: Path) -> Recording:
    """The whole process stands still for some seconds."""
    async with running_service(work) as service:
        recording = recording_of(service)
        commits = committer(service)
        await recording.phase("before", BEFORE, commits)
        os.kill(service.pid, signal.SIGSTOP)
        await asyncio.sleep(4.0)  # the pause itself: rules look at real time
        os.kill(service.pid, signal.SIGCONT)
        await recording.phase("during", 30, commits)
        await recording.phase("after", 120, commits)
        return recording


async def failing_checkpoints(work: Path) -> Recording:
    """Commits are taken, but no checkpoint succeeds for ten minutes."""
    async with running_node(work, journal_checkpoint_interval_ms=500) as (running, recording, commits):
        await recording.phase("before", BEFORE, commits)
        running.disk.fail(WRITES, where="recovery-point", code=errno.ENOSPC)
        await recording.phase("during", 40, commits)
        running.disk.heal()
        await recording.phase("after", AFTER, commits)
        return recording


async def stuck_load(work: Path) -> Recording:
    """A start that does not come to an end: the disk hangs."""
    last = PARTITIONS - 1  # they are read one after the other
    async with running_node(work) as (_, _, commits):
        await commits()
    async with running_node(work, held_partition=last) as (running, recording, commits):
        await recording.phase("before", BEFORE)
        await recording.phase("during", 60)
        running.disk.let_go()
        await recording.phase("after", AFTER, commits)
        return recording


async def slow_disk(work: Path) -> Recording:
    """For fifteen minutes every flush takes most of a second."""
    async with running_node(work) as (running, recording, commits):

        async def slowly() -> None:
            with running.disk.hold():
                committed = asyncio.ensure_future(commits())
                await asyncio.sleep(0.8)  # as long as a flush of a slow disk takes
            await committed

        await recording.phase("before", 40, commits)
        await recording.phase("during", 60, slowly)
        await recording.phase("after", 60, commits)
        return recording


INCIDENTS: Final[Mapping[str, Callable[[Path], Awaitable[Recording]]]] = {
    each.__name__: each
    for each in (full_disk, damaged_partition, long_pause, failing_checkpoints, stuck_load, slow_disk)
}


@asynccontextmanager
async def running_service(work: Path) -> AsyncIterator[Service]:
    """A node in a process of its own."""
    service = Service(work, {"journal.checkpoint.interval.ms": 500})
    try:
        await asyncio.to_thread(service.start)
        await asyncio.to_thread(create_topic, service.bootstrap, TOPIC, 100)
        yield service
    finally:
        service.close()


@asynccontextmanager
async def running_node(
    work: Path, **settings: int
) -> AsyncIterator[tuple[Running, Recording, Callable[[], Awaitable[None]]]]:
    """A node in this process, on a disk that can be made to fail; what it says, and what commits to it."""
    async with node(work / "data", metrics=True, **settings) as running:  # type: ignore[arg-type]
        assert running.app.serving is not None
        assert running.app.serving.metrics is not None
        client = await running.client()
        numbers = count()

        async def commit() -> None:
            for group in range(10):
                await client.commit(f"group-{group}", 0, next(numbers))

        yield running, Recording(running.app.serving.metrics), commit


def recording_of(service: Service) -> Recording:
    """What this service says."""
    return Recording(f"http://127.0.0.1:{service.metrics_port}/metrics")


def committer(service: Service) -> Callable[[], Awaitable[bool]]:
    """Commits some sixty kilobytes for ten groups, and says whether anything was refused."""
    numbers = count()

    def commit() -> bool:
        refused = False
        with closing(RawConnection(service.bootstrap)) as connection:
            for group in range(10):
                offset = next(numbers)
                request = standalone_commit(f"group-{group}", TOPIC, dict.fromkeys(range(100), offset))
                (topic,) = connection.call(request, 8).topics
                refused |= any(partition.error_code for partition in topic.partitions)
        return refused

    return lambda: asyncio.to_thread(commit)


async def record(names: list[str]) -> None:
    """Play these incidents side by side, and keep what was recorded."""

    async def play(name: str) -> None:
        with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as work:
            recording = await INCIDENTS[name](Path(work))
        path = recording.save(name)
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")

    await asyncio.gather(*map(play, names))


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1:] or list(INCIDENTS)))
