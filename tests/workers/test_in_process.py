# SPDX-License-Identifier: Apache-2.0
"""A supervisor and its workers in one process, on simulated time, a disk in memory and a network in memory."""

import asyncio
import errno
import logging
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.file import FILE_NAME
from coordinator.catalogue.topics import Draft
from coordinator.config import Address, Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import HostResources
from coordinator.node import EndsByTopic
from coordinator.workers.questions.committed_ends import EndsOfOtherNodes
from coordinator.workers.supervisor import Supervisor
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Partition
from protocol.placement import partition_for
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.disk.layout import CLEAN_SHUTDOWN_FILE, partition_dir
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.net import requests
from tests.partitions.running import commit_error, fetched
from tests.partitions.test_deleted_topics import deletions_in, keep_deletion
from tests.simulation.loop import SimulatedLoop
from tests.simulation.machine import SimulatedClock
from tests.simulation.network import Network
from tests.storage.faulty import FaultyFileSystem
from tests.workers.in_process import InProcess, LoopThread

ROOT: Final = Path("/data")
PORT: Final = 9092
PARTITIONS: Final = 4
SETTINGS: Final = Settings(
    workers=2,
    listen=Address("127.0.0.1", PORT),
    metrics_listen=None,
    data_dir=ROOT,
    offsets_topic_num_partitions=PARTITIONS,
    group_initial_rebalance_delay_ms=0,
    auto_create_topics_enable=False,
    log_cleaner_enable=False,
    worker_timeout_ms=2_000,
    shutdown_timeout_ms=1_000,
)


class Disk(FaultyFileSystem):
    """A disk that takes no write to files whose path has `refused` in it, unless that is empty."""

    refused = ""
    refusals = 0

    def step(self, name: str, part: Callable[[float], None] | None = None, path: str = "") -> None:
        """Before an operation: a refused one fails, and leaves nothing."""
        if self.refused and self.refused in path and name in ("create", "pwrite"):
            self.refusals += 1
            raise OSError(errno.EIO, "Input/output error")
        super().step(name, part, path)


class Host:
    """One host: its disk, its network, and who runs on it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.network = loop.network = Network(loop, 0)
        self.fs = Disk(ROOT, random.Random(0))
        self.clock = SimulatedClock(loop)
        self.launch = InProcess(loop, self._machine, lambda node: self.network.cut_all(port_of(node)))
        self.supervisor: Supervisor
        self.bind: Callable[[Address], Any] = self.network.bind

    def _machine(self, node: int, dead: asyncio.Event) -> HostResources:
        return HostResources(
            self.fs,
            self.clock,
            random.Random(f"{node}/{self.launch.launches}").randbytes,
            lambda loop, _name: LoopThread(loop, dead),
            self.bind,
            lambda job: write_cleaned_segments(self.fs, job),
        )

    async def start(self) -> None:
        """Start the supervisor, and wait until every partition is served."""
        self.shared, _ = SharedDirectoryFiles.open(ROOT, make_storage_settings(SETTINGS), self.fs)
        machine = self._machine(0, asyncio.Event())
        self.supervisor = Supervisor(SETTINGS, self.loop, machine, self.launch, self.shared, "cluster")
        await self.supervisor.start()
        created: asyncio.Future[Any] = self.loop.create_future()

        def create(draft: Draft) -> None:
            draft.add_topic(requests.TOPIC, 100, topic_id=machine.new_topic_id())

        self.supervisor.store.submit_edit_with_callback(create, created.set_result)
        assert await created is None
        await self.until_served()

    async def until_served(self) -> None:
        await self.until(self._all_served, "every partition to be served")

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Let simulated time pass until `condition` is true."""
        for _ in range(10_000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"gave up waiting for {what}")

    def _all_served(self) -> bool:
        places = self.supervisor.assignment.places
        loaded = self.supervisor.loaded
        return all(
            place.leads and number in loaded and loaded[Partition(number)].leader_epoch == place.epoch
            for number, place in enumerate(places)
        )

    def all_have_the_topics(self) -> bool:
        """Whether the workers have what is on disk."""
        nodes = [each.worker.node for each in self.launch.running.values()]
        version = self.supervisor.feed.version
        return all(node is not None and node.topics.replica.version == version for node in nodes)

    def leader(self, partition: int) -> int:
        owner = self.supervisor.assignment.places[partition].owner
        assert owner is not None
        return owner

    async def ask(self, partition: int, frame: bytes) -> bytes:
        """The answer of the node that leads a partition."""
        client = self.network.connect(port_of(self.leader(partition)))
        client.send(frame)
        answer = await client.receive(10.0)
        client.drop()
        return answer

    async def commit(self, partition: int, offset: int) -> ErrorCode:
        return commit_error(await self.ask(partition, requests.commit(group_in(partition), {0: offset})))

    async def fetch(self, partition: int) -> dict[int, int]:
        return fetched(await self.ask(partition, requests.fetch_offsets(group_in(partition))))

    async def stop(self) -> None:
        """Stop in good order: nothing is left to recover."""
        clean = await self.supervisor.stop()
        assert clean
        self.shared.close(clean=clean)
        assert not [name for name in self.fs.listdir(ROOT) if name.startswith("journal")]


def port_of(node: int) -> int:
    return PORT + node - SETTINGS.node_id


def group_in(partition: int) -> str:
    names = (f"group-{number}" for number in range(1_000))
    return next(name for name in names if partition_for(GroupId(name), PARTITIONS) == partition)


def simulate(story: Callable[[Host], Awaitable[None]]) -> float:
    """Play on a host that was started, and stop it; returns how many simulated seconds that took."""

    async def play() -> None:
        host = Host(loop)
        await host.start()
        await story(host)
        await host.stop()

    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(play())
        return loop.time()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_each_worker_serves_its_partitions_and_no_others() -> None:
    async def story(host: Host) -> None:
        assert {host.leader(partition) for partition in range(PARTITIONS)} == {1, 2}
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 7) is ErrorCode.NONE
            assert await host.fetch(partition) == {0: 7}
        other = host.network.connect(port_of(3 - host.leader(0)))
        other.send(requests.commit(group_in(0), {0: 8}))
        assert commit_error(await other.receive(10.0)) is ErrorCode.NOT_COORDINATOR

    simulate(story)


def test_what_a_killed_worker_acknowledged_is_served_by_its_replacement() -> None:
    async def story(host: Host) -> None:
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 10 + partition) is ErrorCode.NONE
        had = [partition for partition in range(PARTITIONS) if host.leader(partition) == 1]
        epochs = [place.epoch for place in host.supervisor.assignment.places]
        host.launch.running[1].kill()
        await host.until(lambda: host.launch.launches == 3, "another process")
        await host.until_served()
        for partition in range(PARTITIONS):
            assert await host.fetch(partition) == {0: 10 + partition}
            more = host.supervisor.assignment.places[partition].epoch - epochs[partition]
            assert more == (1 if partition in had else 0)
        assert host.supervisor.fleet.restarts.total_deaths_of_node(1) == 1

    simulate(story)


def test_the_next_process_of_a_node_hears_nothing_of_what_the_last_one_asked() -> None:
    """Both number their questions from 1."""

    async def story(host: Host) -> None:
        led_by_other = next(each for each in range(PARTITIONS) if host.leader(each) == 2)
        group = group_in(led_by_other)

        def ask(partition: int) -> list[EndsByTopic | None]:
            node = host.launch.running[1].worker.node
            assert node is not None
            heard: list[EndsByTopic | None] = []
            ends = EndsOfOtherNodes(node.questions)
            ends.request_committed_offsets(GroupId(group), {requests.TOPIC: [partition]}, heard.append)
            return heard

        await host.ask(led_by_other, requests.commit(group, {0: 7, 1: 8}))
        line = host.launch.running[2].lines[0]
        line.hold()
        asked_before = ask(0)
        host.launch.running[1].kill()
        await host.until(lambda: host.launch.launches == 3, "another process")
        await host.until(lambda: host.launch.running[1].worker.node is not None, "its node")
        asked = ask(1)
        line.release()
        await host.until(lambda: asked, "the answer")
        (ends,) = asked
        assert ends is not None
        assert {part: end.offset for part, end in ends[requests.TOPIC].items()} == {1: 8}
        assert not asked_before
        await host.until_served()

    simulate(story)


def test_a_stopped_worker_is_killed_after_its_timeout_and_replaced() -> None:
    async def story(host: Host) -> None:
        hung = host.launch.running[2]
        hung.pulse.stopped = True
        stopped_at = host.loop.time()
        await host.until(hung.dead.is_set, "the worker's end")
        waited_ms = (host.loop.time() - stopped_at) * 1_000
        assert SETTINGS.worker_timeout_ms <= waited_ms < 2 * SETTINGS.worker_timeout_ms
        await host.until(lambda: host.launch.running[2] is not hung, "another process")
        await host.until_served()
        assert await host.commit(3, 1) is ErrorCode.NONE

    simulate(story)


def test_a_partition_moves_and_keeps_what_was_acknowledged() -> None:
    async def story(host: Host) -> None:
        before = host.leader(0)
        for offset in range(20):
            assert await host.commit(0, offset) is ErrorCode.NONE
        host.supervisor.assignment.move(Partition(0), 3 - before)
        host.supervisor.apply_assignment()
        await host.until_served()
        assert host.leader(0) == 3 - before
        assert await host.fetch(0) == {0: 19}

    simulate(story)


def test_a_deletion_that_was_kept_before_all_died_takes_the_offsets_at_the_next_start() -> None:
    async def story(host: Host) -> None:
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 7) is ErrorCode.NONE
        await host.stop()
        keep_deletion(host.fs, ROOT)
        await host.start()  # which makes the topic anew
        for partition in range(PARTITIONS):
            assert await host.fetch(partition) == {}
            assert await host.commit(partition, 8) is ErrorCode.NONE
        assert len(deletions_in(host.fs, ROOT)) == 0
        await host.stop()
        await host.start()
        for partition in range(PARTITIONS):
            assert await host.fetch(partition) == {0: 8}

    simulate(story)


def test_a_topic_made_anew_takes_no_commit_before_it_is_noted_that_the_old_ones_offsets_are_dropped() -> None:
    """Else a crash before that would have the next leaders drop what was committed in the new one."""

    async def story(host: Host) -> None:
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 7) is ErrorCode.NONE
        store = host.supervisor.store
        told: list[Any] = []
        hand_on = store.on_changed

        def refuse_from_now_on(changes: Changes) -> None:
            hand_on(changes)
            if changes.created:
                host.fs.refused = FILE_NAME

        store.on_changed = refuse_from_now_on
        store.submit_edit_with_callback(lambda draft: draft.remove_topic(requests.TOPIC), told.append)
        store.submit_edit_with_callback(
            lambda draft: draft.add_topic(requests.TOPIC, 100, topic_id=b"n" * 16), told.append
        )
        await host.until(lambda: len(told) == 2 and host.fs.refusals > 3, "the disk to refuse the notes")
        assert requests.TOPIC in store.catalogue
        assert len(deletions_in(host.fs, ROOT)) == 1
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 8) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        host.fs.refused = ""
        await host.until(lambda: len(deletions_in(host.fs, ROOT)) == 0, "the notes")
        await host.until(host.all_have_the_topics, "the new topic")
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 8) is ErrorCode.NONE
        await host.stop()
        await host.start()
        for partition in range(PARTITIONS):
            assert await host.fetch(partition) == {0: 8}

    simulate(story)


def test_a_partition_that_cannot_be_read_at_a_start_is_served_once_it_can() -> None:
    async def story(host: Host) -> None:
        for partition in range(PARTITIONS):
            assert await host.commit(partition, 7) is ErrorCode.NONE
        await host.stop()
        host.fs.remove(ROOT / CLEAN_SHUTDOWN_FILE)  # so that its end is looked for
        directory = partition_dir(ROOT, "__consumer_offsets", Partition(1))
        host.fs.unreadable.update(str(directory / name) for name in host.fs.listdir(directory))
        failed: list[int] = []
        host.loop.call_later(5.0, lambda: failed.extend(host.shared.failed))
        host.loop.call_later(6.0, host.fs.unreadable.clear)
        await host.start()
        assert failed == [1]
        assert not host.shared.failed
        for partition in range(PARTITIONS):
            assert await host.fetch(partition) == {0: 7}

    simulate(story)


def test_a_worker_that_dies_again_and_again_loses_its_partitions_to_the_other() -> None:
    async def story(host: Host) -> None:
        for _ in range(4):
            host.launch.running[1].kill()
            launches = host.launch.launches
            await host.until(lambda more=launches: host.launch.launches > more, "another process")  # type: ignore[misc]
        await host.until(lambda: host.leader(0) == host.leader(1) == 2, "the other to lead all")

    assert simulate(story) > 1, "it is started again ever later"


class Unpingable:
    """In the place of a worker's process."""

    def ping(self) -> None:
        raise ValueError("broken")

    def send(self, message: object) -> None:
        pass


def test_a_failure_of_the_supervisor_is_logged_and_asks_for_a_stop_that_is_not_clean(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As nothing pings the workers any more, say: a service manager starts all anew."""

    async def story() -> None:
        host = Host(loop)
        await host.start()
        asked: list[bool] = []
        host.supervisor.on_failed = lambda: asked.append(True)
        assert await host.commit(0, 7) is ErrorCode.NONE
        assert not host.supervisor.has_failed
        workers: dict[int, Any] = host.supervisor.workers
        workers[99] = Unpingable()
        await host.until(lambda: asked, "the supervisor to fail")
        assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == [
            "ping workers: failed"
        ]
        assert await host.commit(0, 8) is ErrorCode.NONE
        del workers[99]
        assert await host.supervisor.stop() is False
        host.shared.close(clean=False)
        await host.start()
        assert await host.fetch(0) == {0: 8}
        await host.stop()

    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(story())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_worker_whose_start_fails_in_an_unforeseen_way_ends_and_is_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(host: Host) -> None:
        binds = 0

        def bind_later(address: Address) -> Any:
            nonlocal binds
            binds += 1
            if binds == 1:
                raise ValueError("broken")
            return host.network.bind(address)

        launches = host.launch.launches
        host.bind = bind_later
        host.launch.running[host.leader(0)].kill()
        await host.until(lambda: binds == 2, "the second start")
        await host.until_served()
        assert host.launch.launches == launches + 2
        assert "start: failed" in [r.getMessage() for r in caplog.records]

    simulate(story)
