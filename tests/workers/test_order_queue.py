# SPDX-License-Identifier: Apache-2.0
"""What a worker hears with the order to lead a partition."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from coordinator.catalogue.store import CatalogueStore
from coordinator.config import Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import real_machine
from coordinator.runtime.tasks import Tasks
from coordinator.topology import leaders_file
from coordinator.topology.view import Leader
from coordinator.workers import messages
from coordinator.workers.assignment import Assignment
from coordinator.workers.topic_feed import TopicFeed
from coordinator.workers.worker_order_sender import NAMES_PER_MESSAGE, WorkerOrderSender
from protocol.newtypes import LeaderEpoch, Partition
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.partitions.running import eventually
from tests.support.idle import idle

PARTITIONS = 2


class Heard:
    """One process of a worker: what it was sent, which it reads when it is told to."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.most_in_a_turn = 0
        self._in_this_turn = 0

    def send(self, message: msgspec.Struct) -> None:
        if not self._in_this_turn:
            asyncio.get_running_loop().call_soon(self._turn_ends)
        self._in_this_turn += 1
        self.all.append(message)

    def _turn_ends(self) -> None:
        self.most_in_a_turn = max(self.most_in_a_turn, self._in_this_turn)
        self._in_this_turn = 0

    async def wait_until_writable(self) -> None:
        await self.reads.wait()

    @property
    def gone(self) -> list[tuple[int, list[str]]]:
        """Partitions and the topics that went."""
        told = [each for each in self.all if isinstance(each, messages.PendingOffsetDrops)]
        return [(each.partition, list(each.topics)) for each in told]

    @property
    def kinds(self) -> list[tuple[type, int]]:
        """What was sent of which partition, each kind once for all of its messages that follow each other."""
        found = [(type(each), each.partition) for each in self.all]
        return [each for number, each in enumerate(found) if number == 0 or found[number - 1] != each]


class Played:
    """A supervisor's part that orders, and the workers by node."""

    def __init__(self, dispatch: WorkerOrderSender, assignment: Assignment, store: CatalogueStore) -> None:
        self.dispatch = dispatch
        self.assignment = assignment
        self.store = store

    def order(self) -> None:
        """Send what follows from the assignment."""
        self.dispatch.enqueue_orders(self.assignment.assign_leaders())


@asynccontextmanager
async def dispatching(tmp_path: Path, workers: dict[int, Heard]) -> AsyncIterator[Played]:
    """Orders for these workers, of which none is up."""
    loop, machine = asyncio.get_running_loop(), real_machine()
    io = machine.thread(loop, "test-io")
    settings = Settings(data_dir=tmp_path, offsets_topic_num_partitions=PARTITIONS)
    shared, _ = SharedDirectoryFiles.open(tmp_path, make_storage_settings(settings), machine.fs)
    store = CatalogueStore(
        tmp_path, io.submit_with_callback, fs=machine.fs, new_topic_id=machine.new_topic_id
    )
    store.load_or_create(PARTITIONS)
    feed = TopicFeed(lambda: store.catalogue)
    store.on_changed, store.topics_version = feed.publish_changes, lambda: feed.version
    assignment = Assignment([Leader(1, LeaderEpoch(0))] * PARTITIONS, sorted(workers))
    write = partial(leaders_file.write, machine.fs, tmp_path)
    dispatch = WorkerOrderSender(loop, io, assignment, shared, store, write, workers.get, Tasks())
    try:
        yield Played(dispatch, assignment, store)
    finally:
        io.close()
        shared.close(clean=True)


async def test_an_order_to_lead_names_the_topics_that_went_and_the_version_without_them(
    tmp_path: Path,
) -> None:
    worker = Heard()
    async with dispatching(tmp_path, {1: worker}) as played:
        store = played.store
        store.submit_edit_with_callback(
            lambda draft: draft.add_topic("t", 1, topic_id=b"t" * 16), lambda _made: None
        )
        store.submit_edit_with_callback(lambda draft: draft.remove_topic("t"), lambda _gone: None)
        await eventually(lambda: store.deletions.number == 1, "the deletion")
        played.assignment.note_node_serving(1)
        played.order()
        await eventually(lambda: len(worker.all) == 4, "the orders")
        assert worker.gone == [(0, ["t"]), (1, ["t"])]
        assert store.topics_version() > 0
        leads = [each for each in worker.all if isinstance(each, messages.LeadPartition)]
        assert [each.topics_version for each in leads] == [store.topics_version()] * 2
        assert played.dispatch.handed == [1, 1]


async def test_many_topics_that_went_are_told_as_fast_as_a_worker_reads(tmp_path: Path) -> None:
    slow, other = Heard(), Heard()
    async with dispatching(tmp_path, {1: slow, 2: other}) as played:
        names = [f"topic-{number}" for number in range(5 * NAMES_PER_MESSAGE)]
        for start in range(0, len(names), 250):
            played.store.deletions.note_deleted(names[start : start + 250])
        slow.reads.clear()
        played.assignment.note_node_serving(1)
        played.assignment.note_node_serving(2)
        played.order()
        await eventually(
            lambda: other.all and isinstance(other.all[-1], messages.LeadPartition), "the other's order"
        )
        assert slow.gone == [(0, names[:NAMES_PER_MESSAGE])]
        played.store.deletions.note_deleted(["meanwhile"])
        played.assignment.move(Partition(0), 2)
        played.order()
        await idle()
        assert len(slow.all) == 1
        slow.reads.set()
        await eventually(lambda: isinstance(slow.all[-1], messages.ResignPartition), "the last order")
        assert [name for _, told in slow.gone for name in told] == [*names, "meanwhile"]
        assert [name for _, told in other.gone for name in told] == names
        assert slow.kinds == [
            (messages.PendingOffsetDrops, 0),
            (messages.LeadPartition, 0),
            (messages.ResignPartition, 0),
        ]
        assert other.kinds == [(messages.PendingOffsetDrops, 1), (messages.LeadPartition, 1)]
        assert played.dispatch.handed == [len(names) + 1, len(names)]
        assert max(slow.most_in_a_turn, other.most_in_a_turn) <= 2, (
            "names, and the order behind the last of them"
        )


async def test_the_next_process_of_a_node_hears_no_order_that_the_last_one_was_to_get(tmp_path: Path) -> None:
    workers = {1: Heard()}
    async with dispatching(tmp_path, workers) as played:
        played.store.deletions.note_deleted(["t"])
        last = workers[1]
        last.reads.clear()
        played.assignment.note_node_serving(1)
        played.order()
        await eventually(lambda: bool(last.all), "the first topics")
        played.assignment.record_worker_death(1)
        played.assignment.free_lost_node_partitions(1, failed=(), comes_back=True)
        following = workers[1] = Heard()
        played.assignment.note_node_serving(1)
        played.order()
        last.reads.set()
        await eventually(lambda: len(following.all) == 4, "the orders")
        leads = [each for each in following.all if isinstance(each, messages.LeadPartition)]
        assert [(each.partition, each.leader_epoch) for each in leads] == [(0, 2), (1, 2)]
        assert following.gone == [(0, ["t"]), (1, ["t"])]
        assert last.gone == [(0, ["t"])]
