# SPDX-License-Identifier: Apache-2.0
"""Incidents, played on real nodes: `python -m tests.incidents.play [NAME...]` records them anew.

All at once, they take five minutes. A full disk needs root, for a small file system of its own.
"""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.ports import free_ports
from coordinator.config import Address, Settings
from coordinator.host_resources import real_machine
from coordinator.workers.gateway_process import make_gateway, start_admin
from coordinator.workers.questions.all_nodes_overview import AllNodesOverview
from coordinator.workers.questions.node_questions import NodeQuestions
from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC
from tests.incidents.recording import INTERVAL_S, STEP_S, Recording
from tests.net import requests
from tests.partitions.disk import WRITES
from tests.partitions.running import PARTITIONS, Client, Running, node
from tests.support.command import groupkeeper
from tests.support.raw import RawConnection, create_topic, standalone_commit
from tests.support.service import Service
from tests.support.tls import TestAuthority

BEFORE: Final = 8
AFTER: Final = 30
TOPIC: Final = "t"
GROUP: Final = "orders"
END_GROUP: Final = "made"


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


class Worker:
    """A group whose topic has an end group: there is work to do, and a member that does it, or does not."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._member, self._generation = "", -1
        self.end = self.offset = self._more = 0

    async def join(self) -> None:
        """Become the only member."""
        self._member, self._generation = await self._client.join_alone(GROUP)

    async def leave(self) -> None:
        """Leave the group without a member."""
        await self._client.ask(requests.leave(GROUP, self._member))

    async def make_work(self) -> None:
        """Declare a hundred records more."""
        self.end += 100
        assert not await self._client.commit(END_GROUP, 0, self.end)

    async def commit(self) -> None:
        """Commit the offset as the member, once more or a new one."""
        whoever = {"member_id": self._member, "generation": self._generation}
        assert not await self._client.commit(GROUP, 0, self.offset, **whoever)

    async def keep_up(self) -> None:
        """Do all the work that there is, after which there is more."""
        self.offset = self.end
        await self.commit()
        await self.make_work()

    async def stand_still(self) -> None:
        """Commit what was committed before; the work grows."""
        await self.commit()
        await self.make_work()

    async def keep_up_with_more(self) -> None:
        """Do all that there was, while more comes each time: the lag grows, the time behind does not."""
        self._more += 10
        self.offset = self.end
        await self.commit()
        self.end += self._more
        await self.make_work()

    async def fall_behind(self) -> None:
        """Do a fifth of what comes."""
        self.offset += 20
        await self.commit()
        await self.make_work()


@asynccontextmanager
async def working_group(work: Path) -> AsyncIterator[tuple[Worker, Recording]]:
    """A node that names its groups, and a group with a member."""
    naming: dict[str, Any] = {
        "metrics_groups_top": 5,
        "metrics_lag_interval_ms": 1_000,
        "end_group": END_GROUP,
    }
    async with running_node(work, **naming) as (running, recording, _):
        worker = Worker(await running.client())
        await worker.join()
        await worker.make_work()
        yield worker, recording


async def stalled_group(work: Path) -> Recording:
    """A member that is alive commits the same offset for a quarter of an hour."""
    return await keep_up_but(work, Worker.stand_still, before=20, during=70, after=AFTER)


async def growing_lag(work: Path) -> Recording:
    """A member that works, and is too slow; then it has help."""
    return await keep_up_but(work, Worker.fall_behind, before=80, during=120, after=80)


async def growing_load(work: Path) -> Recording:
    """For half an hour more records come each time, and the member keeps up: nothing for which to wake anybody."""
    return await keep_up_but(work, Worker.keep_up_with_more, before=20, during=130, after=AFTER)


async def keep_up_but(
    work: Path, act: Callable[[Worker], Awaitable[None]], *, before: int, during: int, after: int
) -> Recording:
    """A member keeps up, does something else for so many samples, and keeps up again."""
    async with working_group(work) as (worker, recording):
        await recording.phase("before", before, worker.keep_up)
        await recording.phase("during", during, partial(act, worker))
        await recording.phase("after", after, worker.keep_up)
        return recording


async def group_without_members(work: Path) -> Recording:
    """The last member leaves, and there is work for half an hour; then somebody comes."""
    async with working_group(work) as (worker, recording):
        await recording.phase("before", 20, worker.keep_up)
        await worker.leave()
        await recording.phase("during", 90, worker.make_work)
        await worker.join()
        await recording.phase("after", AFTER, worker.keep_up)
        return recording


async def rebalance_storm(work: Path) -> Recording:
    """A member comes and goes for half an hour."""
    async with running_node(work) as (running, recording, commits):
        frequent = running.app.manager.frequent_rebalances
        frequent.period_ms = round(frequent.period_ms * STEP_S / INTERVAL_S)
        client = await running.client()

        async def come_and_go() -> None:
            member, _ = await client.join_alone(GROUP)
            await client.ask(requests.leave(GROUP, member))

        await recording.phase("before", BEFORE, commits)
        await recording.phase("during", 112, come_and_go)
        await recording.phase("after", 60, commits)
        return recording


async def expiring_certificate(work: Path) -> Recording:
    """A gateway's process begins with a certificate that is too old, and is started anew with another one."""
    authority = TestAuthority(work / "authority")
    async with AsyncExitStack() as stack:
        recording: Recording | None = None
        for phase, days, samples in (("before", 2, 20), ("during", 0, 20), ("after", 2, 20)):
            certificate = authority.issue(phase, days=days)
            port = await stack.enter_async_context(gateway_process(certificate))
            recording = recording or Recording(f"http://127.0.0.1:{port}/metrics")
            recording.url = f"http://127.0.0.1:{port}/metrics"
            await recording.phase(phase, samples)
        assert recording is not None
        return recording


@asynccontextmanager
async def gateway_process(certificate: tuple[Path, Path]) -> AsyncIterator[int]:
    """What a gateway's process serves over HTTP before it knows its cluster; its port."""
    (port,) = free_ports(1)
    settings = Settings(
        upstream_bootstrap_servers=(Address("127.0.0.1", 1),),
        metrics_listen=Address("127.0.0.1", port),
        gateway_adopt="off",
        gateway_ssl_certificate_location=certificate[0],
        gateway_ssl_key_location=certificate[1],
    )
    machine = real_machine()
    parts = make_gateway(settings, asyncio.get_running_loop(), machine, lambda _id, _address: None)
    admin = await start_admin(
        settings, parts, machine, AllNodesOverview(NodeQuestions(lambda _question: None))
    )
    assert admin is not None
    try:
        yield port
    finally:
        await admin.close()
        await parts.gateway.stop()


INCIDENTS: Final[Mapping[str, Callable[[Path], Awaitable[Recording]]]] = {
    each.__name__: each
    for each in (
        full_disk,
        damaged_partition,
        long_pause,
        failing_checkpoints,
        stuck_load,
        slow_disk,
        stalled_group,
        group_without_members,
        growing_lag,
        growing_load,
        rebalance_storm,
        expiring_certificate,
    )
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
    work: Path, **settings: Any
) -> AsyncIterator[tuple[Running, Recording, Callable[[], Awaitable[None]]]]:
    """A node in this process, on a disk that can be made to fail; what it says, and what commits to it."""
    async with node(work / "data", metrics=True, **settings) as running:
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
