# SPDX-License-Identifier: Apache-2.0
"""What the supervisor and its workers are made of, part by part."""

import asyncio
import socket
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from coordinator.catalogue import file_format
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.cli.errors import CommandError
from coordinator.cli.partitions import ask
from coordinator.cluster import leaders_file, messages
from coordinator.cluster.control import ControlSocket
from coordinator.cluster.ends import Ends
from coordinator.cluster.orders import ListPartitions, socket_path
from coordinator.cluster.remote_catalogue import RemoteCatalogueStore
from coordinator.cluster.restarts import PAUSE_S_MAX, WITHIN_S, Restarts
from coordinator.cluster.supervisor import Supervisor, worker_settings
from coordinator.cluster.topic_changes import apply_changes, difference
from coordinator.cluster.view import NOBODY, Broker, Cluster, Leader, View
from coordinator.config import Address, Settings
from storage.errors import StorageError
from storage.filesystem import RealFileSystem
from storage.placement import partition_for

NAMES = ["a", "b", "c", "d"]


def new_catalogue() -> Catalogue:
    return Catalogue(Topic(name="__consumer_offsets", id=bytes(16), partitions=50))


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


edits = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(NAMES), st.integers(1, 5)),
        st.tuples(st.just("create_partitions"), st.sampled_from(NAMES), st.integers(1, 9)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    ),
    max_size=8,
)


def edit(catalogue: Catalogue, steps: list[tuple[Any, ...]], first_id: int) -> None:
    for number, (name, *arguments) in enumerate(steps):
        if name == "create":
            catalogue.create(*arguments, topic_id=topic_id(first_id + number))
        else:
            getattr(catalogue, name)(*arguments)


@given(edits, edits, edits)
def test_a_difference_makes_the_same_catalogue_or_changes_nothing(
    start: list[tuple[Any, ...]], ours: list[tuple[Any, ...]], others: list[tuple[Any, ...]]
) -> None:
    before = new_catalogue()
    edit(before, start, 100)
    after, master = before.copy(), before.copy()
    edit(after, ours, 200)
    assert apply_changes(difference(before, after), master)
    assert master == after
    # Somebody was faster: what we saw must still be there, or nothing is done.
    raced = before.copy()
    edit(raced, others, 300)
    untouched = raced.copy()
    changes = difference(before, after)
    if apply_changes(changes, raced):
        for old, new in changes:
            known = new or old
            assert known is not None
            found = raced.by_id(known.id)
            assert (found and found.partitions) == (new and new.partitions)
    else:
        assert raced == untouched


class Master:
    """The supervisor's side of a worker's catalogue, which answers when a test lets it."""

    def __init__(self, tmp_path: Path, workers: int) -> None:
        self.catalogue = new_catalogue()
        self.asked: list[tuple[int, messages.ChangeTopics]] = []
        content = file_format.encode(self.catalogue)
        self.stores = [
            RemoteCatalogueStore(tmp_path, content, lambda m, index=index: self.asked.append((index, m)))  # type: ignore[misc]
            for index in range(workers)
        ]

    def answer(self, error: str = "") -> None:
        """Do what was asked first; everybody hears of it before the answer."""
        index, question = self.asked.pop(0)
        done = False if error else apply_changes(question.changes, self.catalogue)
        if done:
            for store in self.stores:
                store.replaced(file_format.encode(self.catalogue))
        self.stores[index].answered(messages.Changed(conflict=not done and not error, error=error))


def create(store: RemoteCatalogueStore, name: str, outcomes: list[Any]) -> None:
    def edit_one(catalogue: Catalogue) -> Topic | Refusal:
        return catalogue.create(name, 2, topic_id=store.new_topic_id())

    store.change(edit_one, outcomes.append)


def test_of_two_workers_that_create_the_same_topic_one_hears_that_it_exists(tmp_path: Path) -> None:
    master = Master(tmp_path, 2)
    first: list[Any] = []
    second: list[Any] = []
    create(master.stores[0], "t", first)
    create(master.stores[1], "t", second)
    assert (first, second) == ([], []), "nobody is told before it is on disk"
    master.answer()
    assert isinstance(first[0], Topic)
    master.answer()
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
    master.stores[0].change(lambda catalogue: catalogue.delete("t"), lambda _outcome: None)
    master.answer()
    assert gone == [["t"], ["t"]]


def test_deaths_close_together_cost_ever_longer_pauses_and_then_patience() -> None:
    now = [0.0]
    restarts = Restarts(lambda: now[0])
    pauses = [restarts.died(1) for _ in range(6)]
    assert pauses == [0.0, 1.0, 2.0, None, None, None]
    assert restarts.pause_s(1) == PAUSE_S_MAX
    assert restarts.total(1) == 6
    now[0] += WITHIN_S + 1
    assert restarts.died(1) == 0.0


def test_the_end_of_a_partition_is_the_furthest_that_any_node_tells() -> None:
    told: list[tuple[int, Any]] = []
    ends = Ends(lambda node, message: told.append((node, message)))
    ends.ask(1, messages.AskEnds(9, "t", (0, 1)), [1, 2, 3])
    assert sorted(told) == [
        (2, messages.EndsWanted(1, "t", (0, 1))),
        (3, messages.EndsWanted(1, "t", (0, 1))),
    ]
    told.clear()
    ends.answered(2, messages.Ends(1, {0: 5, 1: 7}))
    ends.answered(2, messages.Ends(1, {0: 50}))  # twice: does not count
    assert told == []
    ends.answered(3, messages.Ends(1, {0: 6}))
    assert told == [(1, messages.EndsAnswer(9, {0: 6, 1: 7}))]


@pytest.mark.parametrize("how", ["loading", "gone", "unled"])
def test_where_one_node_cannot_tell_nobody_can(how: str) -> None:
    told: list[tuple[int, Any]] = []
    ends = Ends(lambda node, message: told.append((node, message)))
    ends.ask(1, messages.AskEnds(9, "t", (0,)), None if how == "unled" else [1, 2])
    if how == "loading":
        ends.answered(2, messages.Ends(1, None))
    elif how == "gone":
        ends.forget(2)
    assert told[-1] == (1, messages.EndsAnswer(9, None))


def test_a_view_names_the_coordinator_and_spreads_the_topics() -> None:
    brokers = (Broker(1, "h", 1), Broker(2, "h", 2))
    leaders = (Leader(1, 3), Leader(2, 5), Leader(NOBODY, 7), Leader(9, 8))
    cluster = Cluster(View(brokers, leaders))
    offsets = Topic(name="__consumer_offsets", id=bytes(16), partitions=4)
    assert [cluster.leader(offsets, index) for index in range(4)] == [
        Leader(1, 3),
        Leader(2, 5),
        Leader(NOBODY, 7),
        Leader(NOBODY, 8),  # of a node that does not serve (any more)
    ]
    for number in range(40):
        expected = {0: brokers[0], 1: brokers[1]}.get(partition_for(f"g{number}", 4))
        assert cluster.coordinator(f"g{number}") == expected
    topic = Topic(name="t", id=topic_id(1), partitions=6)
    assert {cluster.leader(topic, index).node_id for index in range(6)} == {1, 2}
    cluster.update(View(brokers[1:], leaders))
    assert {cluster.leader(topic, index) for index in range(6)} == {Leader(2, 0)}
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
    assert leaders_file.next_single_epochs(fs, tmp_path, 1, 3) == [0, 0, 0]
    assert leaders_file.read(fs, tmp_path) is None
    leaders_file.write(fs, tmp_path, [Leader(2, 5), Leader(NOBODY, 1)])
    assert leaders_file.next_single_epochs(fs, tmp_path, 1, 3) == [6, 2, 1]
    assert leaders_file.read(fs, tmp_path) == [Leader(1, 6), Leader(1, 2), Leader(1, 1)]
    assert leaders_file.of_partitions(None, 1) == [Leader(NOBODY, 0)]


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
    welcome = messages.Welcome(Settings(data_dir=tmp_path), "c", b"t", b"{}", View((), ()), 3)
    got: list[Any] = []
    channel = messages.Channel(messages.FromSupervisor, got.append, lambda _reason: None)
    data = messages.encode(welcome)
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
    channel = messages.Channel(messages.FromWorker, lambda _message: None, lost.set_result)
    await asyncio.get_running_loop().create_connection(lambda: channel, sock=ours)
    with theirs:
        theirs.sendall(garbage)
        assert "what is no message" in await asyncio.wait_for(lost, 10)
    channel.send(messages.Stop())  # nobody is there


async def test_an_order_that_is_none_is_one_line_in_the_log(tmp_path: Path) -> None:
    control = ControlSocket(cast(Supervisor, None), tmp_path)
    await control.start()
    with capture_logs() as logs:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(tmp_path)))
        writer.write(b"\0\0\0\x0b\x81\xa4type\xa4\xff\xff\xff\xff")
        assert await reader.read() == b""
        writer.close()
        await control.close()
    assert [entry["event"] for entry in logs] == ["refused an order"]
    assert "what is no message: 'utf-8' codec can't decode" in logs[0]["reason"]


def test_orders_without_a_supervisor_say_why(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nothing runs there, or a single node"):
        ask(tmp_path, ListPartitions())
    with pytest.raises(CommandError, match="at most 103 bytes; choose a shorter"):
        ask(tmp_path / ("x" * 100), ListPartitions())
