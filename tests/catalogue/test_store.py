# SPDX-License-Identifier: Apache-2.0
"""The catalogue on disk: nothing is answered before it is there, and a crash leaves the old or the new."""

import errno
import os
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.catalogue_writer import CHANGES_PER_WRITE_MAX, STEPS_PER_SLICE
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.errors import CorruptCatalogue, MissingCatalogue, OffsetsTopicChanged
from coordinator.catalogue.file import REWRITE_BYTES_MIN, CatalogueFile
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.catalogue.topics import Draft
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from storage.disk.filesystem import FileSystem, RealFileSystem
from storage.errors import StorageError, StorageFull
from tests.catalogue.disk import FragileFileSystem, ManualThread, PowerLoss, UnsyncedFileSystem
from tests.catalogue.test_file_format import VERSION_1
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.support.ids import new_topic_id
from tests.support.log_lines import LogLines


def store_in(
    data_dir: Path, fs: FileSystem | None = None, thread: ManualThread | None = None
) -> CatalogueStore:
    """A store that was not loaded yet."""
    submit = (thread or ManualThread()).submit_with_callback
    return CatalogueStore(data_dir, submit, fs=fs or RealFileSystem(), new_topic_id=new_topic_id)


class Bench:
    """A store with a disk that works when told to, and the answers that it gave."""

    def __init__(self, data_dir: Path, fs: FileSystem | None = None) -> None:
        self.thread = ManualThread()
        self.store = store_in(data_dir, fs, self.thread)
        self.catalogue = self.store.load_or_create(50)
        self.told: list[Any] = []

    def create(self, name: str) -> None:
        self.store.submit_edit_with_callback(
            lambda draft: draft.add_topic(name, 1, topic_id=self.store.new_topic_id()), self.told.append
        )

    def delete(self, name: str) -> None:
        self.store.submit_edit_with_callback(lambda draft: draft.remove_topic(name), self.told.append)

    def names(self) -> list[str]:
        return [topic.name for topic in self.catalogue if topic.name != OFFSETS_TOPIC]

    def names_on_disk(self) -> list[str]:
        return names_on_disk(self.store.path.parent)


def names_on_disk(data_dir: Path) -> list[str]:
    stored = store_in(data_dir).load_or_create(50)
    return [topic.name for topic in stored if topic.name != OFFSETS_TOPIC]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_new_directory_gets_a_catalogue_whose_ids_stay(tmp_path: Path) -> None:
    first = Bench(tmp_path)
    assert first.names() == []
    assert first.catalogue.offsets_topic.partitions == 50
    again = store_in(tmp_path).load_or_create(50)
    assert again.offsets_topic == first.catalogue.offsets_topic


def test_a_file_that_is_gone_is_not_made_anew(bench: Bench, tmp_path: Path) -> None:
    bench.create("orders")
    bench.thread.run_one()
    kept = bench.store.path.read_bytes()
    bench.store.path.unlink()
    with pytest.raises(MissingCatalogue, match="missing") as caught:
        store_in(tmp_path).load_or_create(50)
    assert str(caught.value).startswith(str(bench.store.path))
    assert not bench.store.path.exists()
    bench.store.path.write_bytes(kept)
    assert bench.names_on_disk() == ["orders"]


@pytest.mark.parametrize("operations", range(12))
def test_a_first_start_that_was_interrupted_can_be_repeated(tmp_path: Path, operations: int) -> None:
    (tmp_path / "__consumer_offsets-7").mkdir()  # a broker's
    fs = FragileFileSystem(operations)
    with suppress(PowerLoss):
        store_in(tmp_path, fs).load_or_create(50)
    assert names_on_disk(tmp_path) == []
    (tmp_path / "catalogue.json").unlink()
    with pytest.raises(MissingCatalogue):
        names_on_disk(tmp_path)


def test_a_change_is_seen_and_told_only_once_it_is_on_disk(bench: Bench) -> None:
    bench.create("orders")
    assert bench.told == []
    assert bench.names() == bench.names_on_disk() == []
    bench.thread.run_one()
    assert [topic.name for topic in bench.told] == ["orders"]
    assert bench.names() == bench.names_on_disk() == ["orders"]
    assert bench.store.catalogue is bench.catalogue


def test_changes_that_arrive_during_a_write_share_the_next_one(bench: Bench) -> None:
    bench.create("a")
    bench.create("b")
    bench.create("c")
    bench.create("b")
    assert len(bench.thread.waiting) == 1
    bench.thread.run_one()
    assert bench.names() == ["a"]
    assert len(bench.told) == 1
    assert len(bench.thread.waiting) == 1
    bench.thread.run_one()
    assert bench.names() == bench.names_on_disk() == ["a", "b", "c"]
    assert [getattr(each, "name", None) for each in bench.told] == ["a", "b", "c", None]
    assert bench.told[3].error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert bench.thread.waiting == []


def test_what_changes_nothing_is_told_without_a_write(bench: Bench) -> None:
    bench.delete("nothing")
    assert bench.told == [Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert bench.thread.waiting == []


def test_what_changes_nothing_still_waits_for_the_change_that_it_saw(bench: Bench) -> None:
    bench.create("a")
    bench.create("a")  # will see the first one, which a crash can still take back
    assert bench.told == []
    bench.thread.run_one()
    assert bench.told[1].error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert bench.thread.waiting == []


def test_a_failed_write_changes_nothing_and_tells_everybody(bench: Bench) -> None:
    bench.create("a")
    bench.thread.run_one()
    error = StorageFull(bench.store.path, "no space")
    bench.create("b")
    bench.delete("a")
    bench.create("c")
    bench.thread.run_one(error)
    assert bench.told[1:] == [error]
    assert bench.names() == bench.names_on_disk() == ["a"]
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["c"]
    assert [each.name for each in bench.told[2:]] == ["a", "c"]


def test_a_write_that_the_system_refuses_is_a_storage_error(tmp_path: Path) -> None:
    class Full(FragileFileSystem):
        def fsync_dir(self, path: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = store_in(tmp_path, Full(1000))
    with pytest.raises(StorageFull, match=r"catalogue\.json: writing the catalogue failed: No space left"):
        store.load_or_create(50)


def test_an_edit_that_fails_does_not_spoil_the_others(bench: Bench) -> None:
    def broken(draft: Draft) -> None:
        draft.add_topic("half", 1, topic_id=b"h" * 16)
        raise LookupError("a bug")

    bench.create("a")
    bench.store.submit_edit_with_callback(broken, bench.told.append)
    bench.create("b")
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["a", "b"]
    assert isinstance(bench.told[1], LookupError)
    assert isinstance(bench.told[2], Topic)


def test_one_who_cannot_be_told_does_not_keep_the_others_from_it(bench: Bench) -> None:
    def deaf(_outcome: object) -> None:
        raise ConnectionError("gone")

    bench.create("a")
    bench.store.submit_edit_with_callback(lambda draft: draft.add_topic("b", 1, topic_id=b"b" * 16), deaf)
    bench.create("c")
    bench.thread.run_one()
    with pytest.raises(ExceptionGroup) as caught:
        bench.thread.run_one()
    assert [type(error) for error in caught.value.exceptions] == [ConnectionError]
    assert [each.name for each in bench.told] == ["a", "c"]


def test_an_answer_may_ask_for_the_next_change(bench: Bench) -> None:
    bench.store.submit_edit_with_callback(
        lambda draft: draft.add_topic("a", 1, topic_id=b"a" * 16), lambda _outcome: bench.create("b")
    )
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["a", "b"]


def test_deleted_topics_are_reported_once_they_are_gone_for_good(bench: Bench) -> None:
    reports: list[tuple[list[str], list[str], int]] = []
    bench.store.on_topics_deleted = lambda names: reports.append(
        (list(names), bench.names(), len(bench.told))
    )
    bench.create("a")
    bench.create("b")
    bench.create("c")
    bench.thread.run_all()
    assert reports == []
    bench.delete("b")
    bench.delete("a")
    bench.create("a")
    assert reports == []
    bench.thread.run_all()
    # in two writes; a new topic of the same name does not hide that the old one is gone, and comes after it
    assert reports == [(["b"], ["a", "c"], 3), (["a"], ["c"], 4)]
    assert bench.names() == ["a", "c"]


def test_nothing_else_changes_while_what_was_committed_in_deleted_topics_is_dropped(bench: Bench) -> None:
    """Else somebody could commit to a new topic of the name, and that would be dropped with the old offsets."""
    later: list[Callable[[], None]] = []
    steps: list[tuple[list[str], list[str], int]] = []

    def drop(names: Sequence[str]) -> Iterator[None]:
        for _ in range(10):
            steps.append((list(names), bench.names(), len(bench.told)))
            yield

    bench.create("a")
    bench.create("b")
    bench.thread.run_all()
    bench.store.later = later.append
    bench.store.on_topics_deleted = drop
    bench.delete("a")
    bench.thread.run_all()
    bench.create("a")
    bench.thread.run_all()
    assert 0 < len(steps) < 10
    while later:
        later.pop(0)()
        bench.thread.run_all()
    assert steps == [(["a"], ["b"], 2)] * 10
    assert bench.names() == ["a", "b"]
    assert len(bench.told) == 4


def test_a_topic_that_is_made_anew_at_once_finds_the_old_offsets_dropped(bench: Bench) -> None:
    later: list[Callable[[], None]] = []
    bench.store.later = later.append
    dropped: list[int] = []

    def drop(_names: Sequence[str]) -> Iterator[None]:
        for step in range(10):
            dropped.append(step)
            yield

    bench.create("a")
    bench.thread.run_all()
    bench.store.on_topics_deleted = drop
    bench.create("b")  # the next two are tried together after this
    bench.delete("a")
    bench.create("a")
    bench.thread.run_all()
    while later:
        assert bench.names_on_disk() == ["b"], "a start would drop what is committed in the new one"
        assert bench.names() == ["b"], "nobody can commit to the new one yet"
        later.pop(0)()
    assert len(dropped) == 10
    assert len(bench.told) == 2
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["a", "b"]
    assert len(bench.told) == 4


def test_a_topic_that_cannot_be_made_anew_at_once_is_gone_and_may_be_made_later(bench: Bench) -> None:
    bench.create("a")
    bench.thread.run_all()
    bench.create("b")
    bench.delete("a")
    bench.create("a")
    bench.thread.run_one()
    bench.thread.run_one()
    error = StorageFull(bench.store.path, "no space")
    bench.thread.run_one(error)
    assert bench.names() == bench.names_on_disk() == ["b"]
    assert bench.told[2:] == [error, error]
    bench.create("c")
    bench.create("a")
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["a", "b", "c"]
    assert len(bench.told) == 6


def dropped_in(bench: Bench, upto: int, *partitions: int) -> list[bool]:
    """Note that partitions have dropped what went; returns what is heard of it, later."""
    heard: list[bool] = []
    bench.store.persist_finished_drops(dict.fromkeys(map(Partition, partitions), upto), heard.append)
    return heard


def left_on_disk(bench: Bench, partition: int) -> list[str]:
    store = store_in(bench.store.path.parent)
    store.load_or_create(50)
    return store.deletions.undropped_topics(Partition(partition))


def test_a_deletion_is_kept_until_each_partition_has_dropped_its_offsets(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.create(name)
        bench.thread.run_all()
    bench.delete("a")
    bench.thread.run_all()
    assert left_on_disk(bench, 0) == left_on_disk(bench, 1) == ["a"]
    heard = dropped_in(bench, 1, 0, 2)
    assert heard == []
    bench.thread.run_all()
    assert heard == [True]
    assert (left_on_disk(bench, 0), left_on_disk(bench, 1)) == ([], ["a"])
    assert dropped_in(bench, 1, 0) == [True], "that is known, and nothing is written"
    bench.delete("b")
    bench.create("a")
    bench.thread.run_all()
    assert left_on_disk(bench, 0) == ["b"]
    assert left_on_disk(bench, 1) == ["a", "b"]
    assert left_on_disk(bench, 2) == ["b"]
    dropped_in(bench, 2, *range(50))
    bench.thread.run_all()
    assert left_on_disk(bench, 1) == []


def test_deletions_are_counted_on_over_a_start(bench: Bench, tmp_path: Path) -> None:
    """Else a start would take what was noted for an earlier deletion, and drop what was committed since."""
    everywhere = range(50)
    for upto in (1, 2):
        bench.create("a")
        bench.thread.run_all()
        bench.delete("a")
        bench.thread.run_all()
        number = bench.store.deletions.number
        assert number == upto
        dropped_in(bench, number, *everywhere)
        bench.thread.run_all()
        assert [left_on_disk(bench, partition) for partition in everywhere] == [[]] * 50
        bench = Bench(tmp_path)


def test_a_note_that_could_not_be_written_is_written_with_the_next_change() -> None:
    fs = FaultyFileSystem(Path("/data"))
    bench = Bench(Path("/data"), fs)
    bench.create("a")
    bench.delete("a")
    bench.thread.run_all()

    def is_left(partition: int) -> bool:
        file = CatalogueFile(fs, Path("/data"))
        file.read()
        assert file.deletions is not None
        return file.deletions.undropped_topics(Partition(partition)) == ["a"]

    fs.fail(Fault.FULL, only="pwrite")
    heard = dropped_in(bench, 1, 0)
    bench.thread.run_all()
    assert heard == [False]
    fs.fail(Fault.FULL, only="create")
    assert (again := dropped_in(bench, 1, 0)) == [], "it is not on disk, although it is known"
    bench.thread.run_all()
    assert again == [False]
    bench.create("a")
    bench.thread.run_all()
    assert not is_left(0)
    assert is_left(1)


def test_another_number_of_offsets_partitions_is_refused(tmp_path: Path) -> None:
    Bench(tmp_path)
    with pytest.raises(OffsetsTopicChanged, match=r"is 60, but this data was made with 50"):
        store_in(tmp_path).load_or_create(60)


def test_a_damaged_file_refuses_the_start_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_bytes(VERSION_1)
    with pytest.raises(CorruptCatalogue, match=r"catalogue\.json at byte 0: its version is 1"):
        store_in(tmp_path).load_or_create(50)
    assert path.read_bytes() == VERSION_1


def test_a_file_that_cannot_be_read_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").mkdir()
    with pytest.raises(StorageError, match="reading the catalogue failed"):
        store_in(tmp_path).load_or_create(50)


def crashed_after(data_dir: Path, operations: int, torn_bytes: int) -> tuple[FragileFileSystem, list[Any]]:
    """Create a topic on a disk that stops after so many operations; returns what it did and what was told."""
    fs = FragileFileSystem(1_000)
    crashing = Bench(data_dir, fs)
    fs.operations_left, fs.torn_bytes, fs.log = operations, torn_bytes, []
    crashing.create("new")
    with suppress(PowerLoss):
        crashing.thread.run_all()
    return fs, crashing.told


# Before every operation of a write, and in the middle of what it writes.
CRASHES = [(operations, 0) for operations in range(4)] + [(1, torn_bytes) for torn_bytes in range(1, 90, 7)]


@pytest.mark.parametrize(("operations", "torn_bytes"), CRASHES)
def test_a_crash_leaves_the_old_topics_or_the_new_ones(
    tmp_path: Path, operations: int, torn_bytes: int
) -> None:
    before = Bench(tmp_path)
    before.create("old")
    before.thread.run_all()
    fs, told = crashed_after(tmp_path, operations, torn_bytes)
    assert names_on_disk(tmp_path) == (["new", "old"] if "pwrite" in fs.log else ["old"])
    assert bool(told) == (fs.log == ["open", "pwrite", "fsync"])
    # what a crash leaves lying around is not in the way of the next change
    after = Bench(tmp_path)
    after.create("later")
    after.thread.run_all()
    assert "later" in names_on_disk(tmp_path)


@pytest.mark.parametrize("operations", range(7))
def test_a_crash_while_the_file_is_made_anew_loses_nothing(tmp_path: Path, operations: int) -> None:
    before = Bench(tmp_path)
    before.create("old")
    before.thread.run_all()
    fs = FragileFileSystem(1_000)
    file = CatalogueFile(fs, tmp_path)
    topics = file.read()
    fs.operations_left = operations
    with suppress(PowerLoss):
        file.make(topics.offsets_topic, topics.snapshot_topics())
    assert names_on_disk(tmp_path) == ["old"]


@pytest.mark.parametrize("failing", ["pwrite", "fsync"])
def test_after_a_failed_write_the_file_is_made_anew_and_holds_what_was_told(
    tmp_path: Path, failing: str
) -> None:
    """The failed change may be on disk, in part or as a whole: it must neither stay nor be built upon."""

    class Failing(FragileFileSystem):
        def step(self, what: str) -> None:
            if what == failing and self.operations_left < 1_000:
                self.operations_left = 1_000
                raise OSError(errno.EIO, "Input/output error")
            self.log.append(what)

    fs = Failing(1_000)
    bench = Bench(tmp_path, fs)
    bench.create("old")
    bench.thread.run_all()
    fs.operations_left = 0
    bench.create("lost")
    bench.thread.run_all()
    assert isinstance(bench.told[1], StorageError)
    fs.log.clear()
    bench.create("new")
    bench.thread.run_all()
    assert fs.log == ["open", "truncate", "pwrite", "fsync", "rename", "fsync_dir", "open", "pwrite", "fsync"]
    assert bench.names() == bench.names_on_disk() == ["new", "old"]


def test_many_changes_are_kept_in_a_file_that_stays_small(tmp_path: Path) -> None:
    bench = Bench(tmp_path, UnsyncedFileSystem())
    store, everywhere = bench.store, list(map(Partition, range(50)))
    noted: list[bool] = []
    store.on_topics_deleted = lambda _names: store.persist_finished_drops(
        dict.fromkeys(everywhere, store.deletions.number), noted.append
    )
    longest = 0
    for number in range(300):
        bench.store.submit_edit_with_callback(partial(create_many, number), bench.told.append)
        bench.thread.run_all()
        longest = max(longest, bench.store.path.stat().st_size)
        bench.store.submit_edit_with_callback(partial(delete_many, number), bench.told.append)
        bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == []
    assert noted == [True] * 300
    assert longest < 3 * 1024 * 1024, "the file is made anew when it is mostly changes"


def create_many(number: int, draft: Draft) -> None:
    for index in range(100):
        draft.add_topic(f"{number}-{index}-{'x' * 200}", 1, topic_id=new_topic_id())


def delete_many(number: int, draft: Draft) -> None:
    for index in range(100):
        draft.remove_topic(f"{number}-{index}-{'x' * 200}")


class NoRoomForAnother(UnsyncedFileSystem):
    """A disk on which a file can grow, and no new one gets its name."""

    def rename(self, source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_where_the_file_cannot_be_made_anew_changes_go_on(tmp_path: Path) -> None:
    Bench(tmp_path)
    bench = Bench(tmp_path, NoRoomForAnother())
    names = [f"topic-{number:04d}-{'x' * 230}" for number in range(5)]
    many = [f"more-{number:04d}-{'x' * 230}" for number in range(REWRITE_BYTES_MIN // 250)]

    def create(draft: Draft) -> None:
        for name in many:
            draft.add_topic(name, 1, topic_id=new_topic_id())

    bench.store.submit_edit_with_callback(create, lambda _outcome: None)
    bench.thread.run_all()
    assert bench.store.path.stat().st_size > REWRITE_BYTES_MIN
    for name in names:
        bench.create(name)
        bench.thread.run_all()
    assert [topic.name for topic in bench.told] == names
    assert sorted(bench.names_on_disk()) == sorted(names + many)


def test_a_change_costs_the_same_among_many_topics(tmp_path: Path) -> None:
    """In memory and on disk: with copies of the catalogue this took megabytes."""
    topics = [Topic(name=f"t{n}", id=(n + 1).to_bytes(16, "big"), partitions=1) for n in range(20_000)]
    CatalogueFile(UnsyncedFileSystem(), tmp_path).make(
        Topic(name=OFFSETS_TOPIC, id=b"o" * 16, partitions=50), topics
    )
    bench = Bench(tmp_path, UnsyncedFileSystem())
    bench.create("first")  # what is only made once
    bench.thread.run_all()
    size = bench.store.path.stat().st_size
    tracemalloc.start()
    try:
        bench.create("one")
        bench.thread.run_all()
        bench.delete("t7")
        bench.thread.run_all()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert bench.store.path.stat().st_size - size < 250
    assert len(bench.catalogue) == 20_002


def test_so_many_changes_share_a_write_and_no_more(bench: Bench) -> None:
    bench.create("first")
    for number in range(CHANGES_PER_WRITE_MAX + 1):
        bench.create(f"t{number}")
    told = []
    while bench.thread.waiting:
        bench.thread.run_one()
        told.append(len(bench.told))
    assert told == [1, CHANGES_PER_WRITE_MAX + 1, CHANGES_PER_WRITE_MAX + 2]


def test_an_edit_of_many_topics_gives_way_and_is_kept_as_a_whole(bench: Bench) -> None:
    turns: list[Callable[[], None]] = []
    bench.store.later = turns.append

    def create_hundreds(draft: Draft) -> Steps[int]:
        for number in range(500):
            draft.add_topic(f"t{number:03}", 1, topic_id=new_topic_id())
            if number % 10 == 9:
                yield
        return len(draft.changes().created)

    bench.store.submit_stepwise_edit(create_hundreds, bench.told.append)
    bench.create("a")  # shares the next write
    taken = 0
    while turns:
        assert (bench.told, bench.thread.waiting) == ([], [])
        turns.pop()()
        taken += 1
    assert taken == 500 // 10 // STEPS_PER_SLICE
    bench.thread.run_one()
    assert bench.told == [500]
    assert len(bench.names_on_disk()) == 500
    bench.thread.run_one()
    assert bench.names()[0] == "a"


def test_an_edit_that_fails_in_the_middle_leaves_nothing(bench: Bench) -> None:
    def broken(draft: Draft) -> Steps[None]:
        draft.add_topic("half", 1, topic_id=b"h" * 16)
        yield
        raise LookupError("a bug")

    bench.store.submit_stepwise_edit(broken, bench.told.append)
    assert isinstance(bench.told[0], LookupError)
    assert bench.thread.waiting == []


def test_on_changed_tells_what_changed(bench: Bench) -> None:
    changes: list[Changes] = []
    bench.store.on_changed = changes.append
    bench.create("a")
    bench.thread.run_all()
    bench.delete("a")
    bench.thread.run_all()
    (created,) = changes[0].created
    assert created.name == "a"
    assert changes[1:] == [Changes(deleted=[created.id])]


def test_many_changes_are_taken_over_in_slices(bench: Bench) -> None:
    turns: list[Callable[[], None]] = []
    parts: list[Changes] = []
    bench.store.on_changed = parts.append
    for change_all, left in ((create_all, 5_000), (grow_all, 5_000), (delete_all, 0)):
        bench.store.later = None
        bench.store.submit_edit_with_callback(change_all, bench.told.append)
        bench.store.later = turns.append
        parts.clear()
        bench.thread.run_one()
        taken = most = 0
        while turns:
            before = sum(map(count, parts))
            turns.pop()()
            most = max(most, sum(map(count, parts)) - before)
            taken += 1
        assert most <= 1_000, "topics in one turn"
        assert taken >= 4
        assert sum(map(count, parts)) == 5_000
        assert len(bench.names()) == len(bench.names_on_disk()) == left
    assert bench.told == [None] * 3


def count(changes: Changes) -> int:
    return sum(map(len, (changes.deleted, changes.grown, changes.configured, changes.created)))


def create_all(draft: Draft) -> None:
    for number in range(5_000):
        draft.add_topic(f"t{number}", 1, topic_id=new_topic_id())


def grow_all(draft: Draft) -> None:
    for number in range(5_000):
        draft.create_partitions(f"t{number}", 2)


def delete_all(draft: Draft) -> None:
    for number in range(5_000):
        draft.remove_topic(f"t{number}")


def test_a_bug_in_those_who_hear_of_a_change_blocks_no_other(bench: Bench) -> None:
    def broken(_changes: object) -> None:
        raise LookupError("a bug")

    bench.store.on_changed = broken
    bench.store.on_topics_deleted = broken
    bench.create("a")
    bench.create("b")
    bench.delete("a")
    bench.thread.run_all()
    bench.create("c")
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["b", "c"]
    assert len(bench.told) == 4
    assert bench.store.is_idle


def test_what_becomes_of_topics_is_in_the_log(tmp_path: Path, lines: LogLines) -> None:
    bench = Bench(tmp_path)
    bench.create("secret")
    bench.thread.run_all()
    bench.store.submit_edit_with_callback(
        lambda draft: draft.create_partitions("secret", 3), bench.told.append
    )
    bench.store.submit_edit_with_callback(
        lambda draft: draft.replace_configs("secret", {"retention.ms": "1"}), bench.told.append
    )
    bench.thread.run_all()
    bench.delete("secret")
    bench.thread.run_all()
    assert [line for line in lines.lines if line[0] == "info"] == [
        ("info", "topics created", {"topics": ["secret"], "partitions": [1]}),
        ("info", "topics have more partitions", {"topics": ["secret"], "partitions": [3]}),
        ("info", "topic settings changed", {"topics": ["secret"]}),
        ("info", "topics deleted", {"topics": ["secret"]}),
    ]
