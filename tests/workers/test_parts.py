# SPDX-License-Identifier: Apache-2.0
"""What the supervisor and its workers are made of, part by part."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.catalogue_writer import STEPS_PER_SLICE
from coordinator.catalogue.changes import PIECE_TOPICS_MAX, Changes
from coordinator.catalogue.limits import DEFAULT_LIMITS
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.catalogue.topics import Draft, MutableTopics
from coordinator.cli.errors import CommandError
from coordinator.cli.supervisor_client import send_order_to_supervisor
from coordinator.config import Address, Settings
from coordinator.host_resources import real_machine
from coordinator.runtime.tasks import Tasks
from coordinator.topology import leaders_file
from coordinator.topology.gateway_view import GatewayView
from coordinator.topology.view import NO_NODE, Broker, ClusterTopology, Leader, View
from coordinator.workers import messages
from coordinator.workers.channel import Channel, encode
from coordinator.workers.gateway_process import GatewayParts, GatewayProcess
from coordinator.workers.liveness import Liveness
from coordinator.workers.operator_orders import ListPartitions, socket_path
from coordinator.workers.operator_socket import ControlSocket
from coordinator.workers.process_launcher import Process
from coordinator.workers.process_settings import worker_settings
from coordinator.workers.remote_catalogue import CatalogueReplica
from coordinator.workers.restarts import PAUSE_S_MAX, WITHIN_S, Restarts
from coordinator.workers.subprocesses import SubprocessLauncher
from coordinator.workers.supervised_process import EXIT_FAILED
from coordinator.workers.supervisor import Supervisor
from coordinator.workers.supervisor_topic_changes import apply_all_or_none_in_steps
from coordinator.workers.topic_feed import KEPT_BYTES_MAX, TopicFeed
from coordinator.workers.unknown_topics import MISSED_AGAIN_S, MISSED_MAX, UnknownTopicRefresher
from coordinator.workers.worker_process import WorkerProcess
from protocol.errors import ErrorCode
from protocol.framing import LENGTH_BYTES
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from protocol.placement import partition_for
from storage.disk.checkpoint_file import write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import OFFSETS_TOPIC, TAKEN_OVER_FILE
from storage.errors import StorageError
from storage.recovery.shared_directory import SharedDirectoryFiles
from storage.settings import LogSettings
from tests.support.idle import idle
from tests.support.ids import new_topic_id

NAMES = ["a", "b", "c", "d"]


def new_catalogue() -> Catalogue:
    return Catalogue(Topic(name="__consumer_offsets", id=bytes(16), partitions=50))


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


edits = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(NAMES), st.integers(1, 5)),
        st.tuples(st.just("create_partitions"), st.sampled_from(NAMES), st.integers(1, 9)),
        st.tuples(st.just("remove_topic"), st.sampled_from(NAMES)),
    ),
    max_size=8,
)


def edit(catalogue: MutableTopics, steps: list[tuple[Any, ...]], first_id: int) -> None:
    for number, (name, *arguments) in enumerate(steps):
        if name == "create":
            catalogue.add_topic(*arguments, topic_id=topic_id(first_id + number))
        else:
            getattr(catalogue, name)(*arguments)


@given(edits, edits, edits)
def test_a_difference_makes_the_same_topics_or_changes_nothing(
    start: list[tuple[Any, ...]], ours: list[tuple[Any, ...]], others: list[tuple[Any, ...]]
) -> None:
    before = new_catalogue()
    edit(before, start, 100)
    after, master, raced = before.make_draft(), before.make_draft(), before.make_draft()
    edit(after, ours, 200)
    changes = after.changes()
    assert made(list(changes.split_into_pieces()), master)
    assert master.changes() == changes
    # Somebody was faster: what we saw must still be there, or nothing is done.
    edit(raced, others, 300)
    untouched = raced.changes()
    if made(list(changes.split_into_pieces()), raced):
        assert all(raced.by_id(gone) is None for gone in changes.deleted)
        for grown in changes.grown:
            found = raced.by_id(grown.id)
            assert found is not None
            assert found.partitions == grown.partitions
        assert all(raced.by_id(topic.id) == topic for topic in changes.created)
    else:
        assert raced.changes() == untouched


def test_of_changes_that_two_decide_on_at_once_only_those_fit_that_the_limits_leave_room_for() -> None:
    limits = msgspec.structs.replace(DEFAULT_LIMITS, topics=1)
    catalogue = Catalogue(new_catalogue().offsets_topic, limits=limits)
    first, second = catalogue.make_draft(), catalogue.make_draft()
    first.add_topic("a", 1, topic_id=topic_id(1))
    second.add_topic("b", 1, topic_id=topic_id(2))
    draft = catalogue.make_draft()
    assert made([first.changes()], draft)
    assert not made([second.changes()], draft)
    assert [topic.name for topic in draft.changes().created] == ["a"]


def made(changes: list[Changes], draft: Draft) -> bool:
    """Whether the supervisor has made these changes."""
    steps = apply_all_or_none_in_steps(changes, draft)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bool(end.value)


class Master:
    """The supervisor's side of a worker's catalogue, which answers when a test lets it."""

    def __init__(self, tmp_path: Path, workers: int) -> None:
        self.catalogue = new_catalogue()
        self.version = 0
        self.asked: list[tuple[int, Any]] = []
        self.stores = []
        for index in range(workers):
            send = partial(self._got, index)
            self.stores.append(CatalogueReplica(tmp_path, self.catalogue.offsets_topic, send, new_topic_id))
            self.send_everything(index)

    def _got(self, index: int, message: Any) -> None:
        self.asked.append((index, message))

    def send_everything(self, index: int) -> None:
        """Send all topics to a worker."""
        topics = list(self.catalogue.snapshot_topics())
        self.stores[index].queue_message(messages.AllTopicsPiece(self.version, is_first=True))
        self.stores[index].queue_message(messages.AllTopicsPiece(self.version, topics))
        self.stores[index].queue_message(messages.AllTopicsPiece(self.version, is_last=True))

    def answer(self, error: str = "", *, answer_first: bool = False) -> None:
        """Do what was asked first; in whatever order that and the answer arrive."""
        index, question = self.asked.pop(0)
        draft = self.catalogue.make_draft()
        told: list[Any] = []
        done = False if error else made([question.changes], draft)
        if done:
            self.version += 1
            told = [messages.TopicsChanged(self.version, draft.changes())]
            self.catalogue.apply_and_list_deleted(draft.changes())
        answer = messages.TopicChangeReply(self.version, conflict=not done and not error, error=error)
        if answer_first:
            self.stores[index].queue_message(answer)
        for store in self.stores:
            for message in told:
                store.queue_message(message)
        if not answer_first:
            self.stores[index].queue_message(answer)


def create(store: CatalogueReplica, name: str, outcomes: list[Any]) -> None:
    def edit_one(draft: Draft) -> Topic | Refusal:
        return draft.add_topic(name, 2, topic_id=store.new_topic_id())

    store.submit_edit_with_callback(edit_one, outcomes.append)


def test_a_worker_that_has_missed_a_change_asks_for_all_topics(tmp_path: Path) -> None:
    master = Master(tmp_path, 2)
    gone: list[str] = []
    master.stores[1].on_topics_deleted = gone.extend
    create(master.stores[0], "old", [])
    master.answer()
    master.stores[0].submit_edit_with_callback(lambda draft: draft.remove_topic("old"), lambda _outcome: None)
    second = master.stores.pop()
    master.answer()  # which the second does not get
    master.stores.append(second)
    outcomes: list[Any] = []
    create(second, "mine", outcomes)
    create(master.stores[0], "new", [])
    _, (other, question) = master.asked.pop(0), master.asked.pop(0)
    assert other == 0
    master.asked = [(0, question)]
    master.answer()
    assert master.asked == [(1, messages.AskTopics())]
    assert "old" in second.catalogue
    assert outcomes == []
    second.queue_message(messages.TopicChangeReply(master.version, conflict=True))
    assert len(master.asked) == 1, "what has a version that is not there yet waits for it"
    master.send_everything(1)
    assert second.catalogue == master.catalogue
    assert gone == ["old"]
    assert [type(question) for _, question in master.asked] == [messages.AskTopics, messages.ChangeTopics]


def run_all(turns: list[Callable[[], None]]) -> None:
    """Let the loop turn until nothing is left to be called."""
    while turns:
        turns.pop(0)()


def test_what_comes_while_an_edit_is_tried_waits_for_its_end(tmp_path: Path) -> None:
    """Else a topic that was grown in the draft, and is deleted by another worker, would be a new one in the end."""
    master = Master(tmp_path, 2)
    create(master.stores[0], "t", [])
    master.answer()
    store, turns, outcomes = master.stores[1], list[Callable[[], None]](), list[Any]()
    store.later = turns.append

    def grow(draft: Draft) -> Steps[Any]:
        grown = draft.create_partitions("t", 5)
        for _ in range(STEPS_PER_SLICE):
            yield
        return grown

    store.submit_stepwise_edit(grow, outcomes.append)
    master.stores[0].submit_edit_with_callback(lambda draft: draft.remove_topic("t"), lambda _outcome: None)
    master.answer()
    assert "t" in store.catalogue
    run_all(turns)
    assert "t" not in store.catalogue
    ((_, asked),) = master.asked
    assert [grown.partitions for grown in asked.changes.grown] == [5]
    master.answer()  # it does not fit, and is tried again
    run_all(turns)
    assert outcomes == [Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_many_topics_that_come_at_once_are_taken_over_in_slices(tmp_path: Path) -> None:
    master = Master(tmp_path, 1)
    store, turns, told = master.stores[0], list[Callable[[], None]](), list[int]()
    store.later = turns.append
    store.on_changed = lambda changes: told.append(len(changes.created))
    for version in range(1, 41):
        topics = [
            Topic(name=f"t{version}-{number}", id=new_topic_id(), partitions=1) for number in range(250)
        ]
        store.queue_message(messages.TopicsChanged(version, Changes(created=topics)))
    most, before = sum(told), sum(told)
    while turns:
        turns.pop()()
        most, before = max(most, sum(told) - before), sum(told)
    assert most <= 1_000, "topics in one turn"
    assert (before, len(store.catalogue)) == (10_000, 10_001)


def test_a_worker_that_cannot_take_a_change_over_asks_for_all_topics(tmp_path: Path) -> None:
    master = Master(tmp_path, 1)
    store = master.stores[0]
    store.queue_message(messages.AllTopicsPiece(0, is_first=True))  # of a list that ends before it is whole
    store.queue_message(messages.TopicsChanged(1, Changes(deleted=[b"x" * 16])))
    assert master.asked == [(0, messages.AskTopics())]
    store.queue_message(messages.AllTopicsPiece(0, is_last=True))
    assert len(store.catalogue) == len(master.catalogue)
    master.asked.clear()
    master.send_everything(0)
    outcomes: list[Any] = []
    create(store, "new", outcomes)
    master.answer()
    assert [outcome.name for outcome in outcomes] == ["new"]
    assert store.catalogue == master.catalogue


class FakeReader:
    """A worker's socket that is read when a test says so."""

    def __init__(self) -> None:
        self.is_open = True
        self.frames: list[bytes] = []
        self.written = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.written.set()

    async def wait_until_writable(self) -> None:
        await self.room.wait()

    def messages(self) -> list[Any]:
        """What has come since the last time."""
        frames, self.frames = self.frames, []
        decoder = msgspec.msgpack.Decoder(messages.AllTopicsPiece | messages.TopicsChanged)
        return [decoder.decode(frame[LENGTH_BYTES:]) for frame in frames]


class Fed:
    """A feed of many topics, and one that reads it."""

    def __init__(self, topics: int) -> None:
        self.catalogue = new_catalogue()
        for number in range(1, topics + 1):
            self.catalogue.add_topic(f"t{number}", 1, topic_id=topic_id(number))
        self.feed = TopicFeed(lambda: self.catalogue)
        self.reader = FakeReader()
        self.subscription = self.feed.subscribe(self.reader)
        self.running = asyncio.create_task(self.subscription.send_until_closed())

    def create(self, *names: str) -> None:
        draft = self.catalogue.make_draft()
        for name in names:
            draft.add_topic(name, 1, topic_id=new_topic_id())
        changes = draft.changes()
        self.catalogue.apply_and_list_deleted(changes)
        self.feed.publish_changes(changes)

    async def has_read(self, store: CatalogueReplica) -> None:
        """Return once everything that is sent has come to a worker's copy."""
        while store.catalogue != self.catalogue:
            await asyncio.sleep(0)
            for message in self.reader.messages():
                store.queue_message(message)

    async def close(self) -> None:
        self.reader.is_open = False
        self.feed.unsubscribe(self.subscription)
        await self.running


async def test_topics_are_sent_in_pieces_and_then_a_change_costs_what_it_changes(tmp_path: Path) -> None:
    fed = Fed(20_000)
    sizes: list[int] = []
    store = CatalogueReplica(tmp_path, fed.catalogue.offsets_topic, lambda _message: None, new_topic_id)
    while not store.arrived.is_set():
        await asyncio.sleep(0)
        sizes += map(len, fed.reader.frames)
        for message in fed.reader.messages():
            store.queue_message(message)
    assert store.catalogue == fed.catalogue
    assert len(sizes) > 20_000 / PIECE_TOPICS_MAX
    assert max(sizes) < 64 * 1024
    fed.reader.written.clear()
    fed.create("one")
    await asyncio.wait_for(fed.reader.written.wait(), 120)
    (frame,) = fed.reader.frames
    assert len(frame) < 200
    await fed.has_read(store)
    await fed.close()


async def test_one_who_reads_nothing_gets_no_more_and_everything_anew_if_too_much_has_changed(
    tmp_path: Path,
) -> None:
    fed = Fed(10)
    store = CatalogueReplica(tmp_path, fed.catalogue.offsets_topic, lambda _message: None, new_topic_id)
    await fed.has_read(store)
    fed.reader.room.clear()
    fed.create("first")
    for number in range(40):
        fed.create(*(f"{number}-{index}-{'x' * 200}" for index in range(500)))
        await asyncio.sleep(0)
    assert len(fed.reader.frames) == 1
    assert sum(map(len, fed.feed._kept)) <= KEPT_BYTES_MAX
    fed.reader.room.set()
    await fed.has_read(store)
    assert store.catalogue.totals.topics == 10 + 1 + 40 * 500
    await fed.close()


async def test_changes_during_the_first_sending_come_after_it(tmp_path: Path) -> None:
    fed = Fed(2_000)
    store = CatalogueReplica(tmp_path, fed.catalogue.offsets_topic, lambda _message: None, new_topic_id)
    turns = 0
    while not store.arrived.is_set():
        fed.create(f"new{turns}")
        turns += 1
        await asyncio.sleep(0)
        for message in fed.reader.messages():
            store.queue_message(message)
    assert turns > 3
    await fed.has_read(store)
    fed.subscription.start_anew()
    fed.create("last")
    await fed.has_read(store)
    await fed.close()


@pytest.mark.parametrize("answer_first", [False, True])
def test_of_two_workers_that_create_the_same_topic_one_hears_that_it_exists(
    tmp_path: Path, answer_first: bool
) -> None:
    master = Master(tmp_path, 2)
    first: list[Any] = []
    second: list[Any] = []
    create(master.stores[0], "t", first)
    create(master.stores[1], "t", second)
    assert (first, second) == ([], []), "nobody is told before it is on disk"
    master.answer(answer_first=answer_first)
    assert isinstance(first[0], Topic)
    master.answer(answer_first=answer_first)
    assert isinstance(second[0], Refusal)
    assert master.asked == []
    assert all(store.catalogue == master.catalogue for store in master.stores)


def test_a_change_that_cannot_be_kept_is_an_error_and_the_next_one_goes_on(tmp_path: Path) -> None:
    master = Master(tmp_path, 1)
    outcomes: list[Any] = []
    create(master.stores[0], "t", outcomes)
    create(master.stores[0], "u", outcomes)
    master.answer("no space left")
    assert isinstance(outcomes[0], StorageError)
    master.answer()
    assert isinstance(outcomes[1], Topic)
    assert "t" not in master.catalogue
    assert "u" in master.stores[0].catalogue


def test_deleted_topics_are_told_at_every_worker(tmp_path: Path) -> None:
    master = Master(tmp_path, 2)
    gone: list[list[str]] = [[], []]
    for names, store in zip(gone, master.stores, strict=True):
        store.on_topics_deleted = names.extend
    create(master.stores[0], "t", [])
    master.answer()
    master.stores[0].submit_edit_with_callback(
        lambda catalogue: catalogue.remove_topic("t"), lambda _outcome: None
    )
    master.answer()
    assert gone == [["t"], ["t"]]


def test_deaths_close_together_cost_ever_longer_pauses_and_then_patience() -> None:
    now = [0.0]
    restarts = Restarts(lambda: now[0])
    pauses = [restarts.record_death(1) for _ in range(6)]
    assert pauses == [0.0, 1.0, 2.0, None, None, None]
    assert restarts.compute_restart_delay_s(1) == PAUSE_S_MAX
    assert restarts.total_deaths_of_node(1) == 6
    now[0] += WITHIN_S + 1
    assert restarts.record_death(1) == 0.0


async def test_what_a_worker_has_said_is_heard_to_the_end_before_it_counts_as_gone() -> None:
    """It may have confirmed a deletion, and then taken commits to the topic that was made anew."""
    happened: list[object] = []
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    worker = WorkerProcess(1, Liveness(1_000, 1_000), happened.append, happened.append)

    class Ended:
        pid = 1

        def read_system_state(self) -> None:
            return None

        def kill(self) -> None:
            raise AssertionError("it has ended by itself")

        async def wait(self) -> int:
            return await ended

    async def launch(node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol) -> Process:
        return Ended()

    await worker.start(launch, Tasks())
    ended.set_result(-9)
    await idle()
    assert happened == []
    said = messages.OffsetsDropped(3, [Partition(1)], 1)
    worker.channel.data_received(encode(said))
    worker.channel.connection_lost(None)
    await worker.end
    assert happened == [said, -9]


class Unsupervised:
    """The process of a gateway, which has nobody to tell."""

    def configure(self, settings: Settings, name: int | str) -> None:
        pass

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        pass

    def end_orphaned_worker(self, reason: str) -> None:
        raise AssertionError(reason)


async def test_a_gateway_whose_start_fails_in_an_unforeseen_way_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def make(*_: Any) -> GatewayParts:
        raise RuntimeError("broken")

    process = GatewayProcess(asyncio.get_running_loop(), real_machine(), Unsupervised(), make)
    process.channel.data_received(encode(messages.GatewayStart(Settings(), 0, GatewayView())))
    assert await process.ended == EXIT_FAILED
    assert [record.getMessage() for record in caplog.records] == ["start: failed"]


class HearingWorker(WorkerProcess[messages.FromWorker]):
    """In the place of a worker's process: what it was sent."""

    def __init__(self) -> None:
        super().__init__(1, Liveness(1_000, 1_000), lambda _message: None, lambda _status: None)
        self.heard: list[Any] = []
        self.has_heard = asyncio.Event()

    def send(self, message: Any) -> None:
        self.heard.append(message)
        self.has_heard.set()


def supervisor_of(shared: SharedDirectoryFiles) -> Supervisor:
    """A supervisor that was not started."""
    settings = Settings(data_dir=shared.data_dir, workers=2)
    launch = SubprocessLauncher(shared.lock_descriptors)
    return Supervisor(settings, asyncio.get_running_loop(), real_machine(), launch, shared, "cluster")


async def test_the_next_process_of_a_node_hears_nothing_of_what_the_last_one_changed(tmp_path: Path) -> None:
    shared, _ = SharedDirectoryFiles.open(tmp_path, LogSettings(), RealFileSystem())
    supervisor = supervisor_of(shared)
    try:
        last, following = HearingWorker(), HearingWorker()
        draft = supervisor.store.catalogue.make_draft()
        draft.add_topic("new", 1, topic_id=topic_id(1))
        supervisor.workers[1] = last
        supervisor._got(last, messages.ChangeTopics(draft.changes(), is_last=True))
        supervisor.workers[1] = following
        await asyncio.wait_for(last.has_heard.wait(), 120)
        assert last.heard == [messages.TopicChangeReply(1, conflict=False)]
        assert following.heard == []
        assert "new" in supervisor.store.catalogue
    finally:
        supervisor.io.close()
        shared.close(clean=False)


def test_for_one_missing_topic_the_cluster_is_looked_at_once_in_a_while() -> None:
    now_s = [100.0]
    sent: list[messages.FromWorker] = []
    due: list[Callable[[], None]] = []
    missed = UnknownTopicRefresher(
        lambda: now_s[0], lambda _seconds, call: due.append(call), sent.append
    ).refresh_for_topic

    def looks_for(*topics: str | bytes) -> bool:
        for topic in topics:
            missed(topic)
        assert len(due) <= 1, "what comes together is told together"
        for call in due:
            call()
        due.clear()
        return bool(sent) and sent.pop() == messages.AskTopicRefresh()

    assert looks_for("a", "b", "a", b"id", "b", b"id")
    assert not looks_for("a", b"id")
    now_s[0] += MISSED_AGAIN_S / 2
    assert not looks_for("b")
    assert looks_for("c", "a")
    now_s[0] += MISSED_AGAIN_S / 2
    assert not looks_for("c")
    assert looks_for("a")
    assert not looks_for("x" * 250), "no topic has such a name"
    assert looks_for(*(f"made up {number}" for number in range(MISSED_MAX)))
    assert not looks_for("more"), "what is kept of names that somebody makes up is bounded"
    now_s[0] += MISSED_AGAIN_S
    assert looks_for("more")


def test_a_view_names_the_coordinator_and_spreads_the_topics() -> None:
    brokers = (Broker(1, "h", 1), Broker(2, "h", 2))
    leaders = (
        Leader(1, LeaderEpoch(3)),
        Leader(2, LeaderEpoch(5)),
        Leader(NO_NODE, LeaderEpoch(7)),
        Leader(9, LeaderEpoch(8)),
    )
    cluster = ClusterTopology(View(brokers, leaders))
    offsets = Topic(name="__consumer_offsets", id=bytes(16), partitions=4)
    assert [cluster.leader(offsets, index) for index in range(4)] == [
        Leader(1, LeaderEpoch(3)),
        Leader(2, LeaderEpoch(5)),
        Leader(NO_NODE, LeaderEpoch(7)),
        Leader(NO_NODE, LeaderEpoch(8)),  # of a node that does not serve (any more)
    ]
    for number in range(40):
        expected = {0: brokers[0], 1: brokers[1]}.get(partition_for(GroupId(f"g{number}"), 4))
        assert cluster.look_up_coordinator(GroupId(f"g{number}")) == expected
    topic = Topic(name="t", id=topic_id(1), partitions=6)
    assert {cluster.leader(topic, index).node_id for index in range(6)} == {1, 2}
    cluster.update(View(brokers[1:], leaders))
    assert {cluster.leader(topic, index) for index in range(6)} == {Leader(2, LeaderEpoch(0))}
    assert cluster.controller_id == 2


def test_each_worker_has_an_id_and_ports_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_dir=Path("d"), node_id=5, listen=Address("h", 9092), metrics_listen=None)
    monkeypatch.chdir(tmp_path)
    third = worker_settings(settings, 2)
    assert third.data_dir == tmp_path / "d"
    assert (third.node_id, third.listen, third.advertise, third.metrics_listen) == (
        7,
        Address("h", 9094),
        None,
        None,
    )
    anywhere = worker_settings(Settings(listen=Address("h", 0), advertise=Address("x", 1000)), 1)
    assert (anywhere.listen, anywhere.advertise) == (Address("h", 0), Address("x", 1001))


def test_leaders_are_noted_and_epochs_of_a_single_node_grow_only_where_others_were(tmp_path: Path) -> None:
    fs = RealFileSystem()
    assert leaders_file.start_single_node_leadership(fs, tmp_path, 1, 3) == [0, 0, 0]
    assert leaders_file.read(fs, tmp_path) is None
    leaders_file.write(fs, tmp_path, [Leader(2, LeaderEpoch(5)), Leader(NO_NODE, LeaderEpoch(1))])
    assert leaders_file.start_single_node_leadership(fs, tmp_path, 1, 3) == [6, 2, 1]
    assert leaders_file.read(fs, tmp_path) == [
        Leader(1, LeaderEpoch(6)),
        Leader(1, LeaderEpoch(2)),
        Leader(1, LeaderEpoch(1)),
    ]
    assert leaders_file.read_partition_leaders(fs, tmp_path / "new", 1) == [Leader(NO_NODE, LeaderEpoch(0))]


def test_epochs_go_on_behind_those_of_a_broker(tmp_path: Path) -> None:
    fs = RealFileSystem()
    for partition, epoch, first_offset in ((0, 10, 90), (1, 4, 100), (2, 4, 101)):
        (tmp_path / f"{OFFSETS_TOPIC}-{partition}").mkdir()
        text = f"0\n2\n1 0\n{epoch} {first_offset}\n"
        (tmp_path / f"{OFFSETS_TOPIC}-{partition}" / "leader-epoch-checkpoint").write_text(text)
    # Nothing was taken over: these are epochs of our own.
    assert leaders_file.start_single_node_leadership(fs, tmp_path, 1, 4) == [10, 4, 4, 0]
    # A broker wrote up to 100: the first is its, and the others began behind it.
    ends = {(OFFSETS_TOPIC, Partition(partition)): Offset(100) for partition in range(3)}
    write_offsets(fs, tmp_path / TAKEN_OVER_FILE, ends)
    for _ in range(2):
        assert leaders_file.start_single_node_leadership(fs, tmp_path, 1, 4) == [11, 4, 4, 0]
    assert [each.epoch for each in leaders_file.read_partition_leaders(fs, tmp_path, 4)] == [11, 4, 4, 0]
    leaders_file.write(fs, tmp_path, [Leader(2, LeaderEpoch(3)), Leader(2, LeaderEpoch(7))])
    assert leaders_file.start_single_node_leadership(fs, tmp_path, 1, 4) == [12, 8, 5, 1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "truncated"),
        ('{"version":2,"partitions":[]}', "version is 2"),
        ('{"partitions":[[1,"x"]]}', "Expected"),
    ],
)
def test_a_damaged_file_of_leaders_is_left_alone_and_named(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / leaders_file.FILE_NAME
    path.write_text(content)
    with pytest.raises(leaders_file.CorruptLeaders, match=reason) as refused:
        leaders_file.read(RealFileSystem(), tmp_path)
    assert str(path) in str(refused.value)
    assert path.read_text() == content


def test_settings_survive_the_way_to_a_worker(tmp_path: Path) -> None:
    welcome = messages.WorkerStart(
        Settings(data_dir=tmp_path), "c", b"t", new_catalogue().offsets_topic, View((), ()), 3
    )
    got: list[Any] = []
    channel = Channel(messages.FromSupervisor, got.append, lambda _reason: None)
    data = encode(welcome)
    for start in range(0, len(data), 100):
        channel.data_received(data[start : start + 100])
    assert got == [welcome]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\0\0\5hello",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\1\xc1",
        b"\0\0\0\x0b\x81\xa4type\xa4\xff\xff\xff\xff",
        b"\0\0\x4e\x21\x81\xa1x" + b"\x91" * 19_998,
    ],
)
async def test_garbage_ends_the_connection_with_a_reason(garbage: bytes) -> None:
    ours, theirs = socket.socketpair()
    lost = asyncio.get_running_loop().create_future()
    channel: Channel[messages.FromWorker] = Channel(
        messages.FromWorker, lambda _message: None, lost.set_result
    )
    await asyncio.get_running_loop().create_connection(lambda: channel, sock=ours)
    with theirs:
        theirs.sendall(garbage)
        assert "what is no message" in await asyncio.wait_for(lost, 120)
    channel.send(messages.Stop())  # nobody is there


async def test_an_order_that_is_none_is_one_line_in_the_log(tmp_path: Path) -> None:
    shared, _ = SharedDirectoryFiles.open(tmp_path, LogSettings(), RealFileSystem())
    supervisor = supervisor_of(shared)
    control = ControlSocket(supervisor, tmp_path)
    await control.start()
    with capture_logs() as logs:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(tmp_path)))
        writer.write(b"\0\0\0\x0b\x81\xa4type\xa4\xff\xff\xff\xff")
        assert await reader.read() == b""
        writer.close()
        await control.close()
    supervisor.io.close()
    shared.close(clean=False)
    assert [entry["event"] for entry in logs] == ["refused an order"]
    assert "what is no message: 'utf-8' codec can't decode" in logs[0]["reason"]


def test_orders_without_a_supervisor_say_why(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nothing runs there, or only a single node"):
        send_order_to_supervisor(tmp_path, ListPartitions())
    with pytest.raises(CommandError, match="at most 103 bytes; choose a shorter"):
        send_order_to_supervisor(tmp_path / ("x" * 100), ListPartitions())
