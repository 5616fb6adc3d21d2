# SPDX-License-Identifier: Apache-2.0
"""The catalogue on disk: nothing is told before it is there, and a crash leaves the old or the new."""

import errno
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.file_format import CorruptCatalogue
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.store import CatalogueStore, OffsetsTopicChanged
from coordinator.catalogue.topic import Refusal, Topic
from protocol.errors import ErrorCode
from storage.errors import StorageError, StorageFull
from tests.catalogue.disk import FragileFileSystem, ManualThread, PowerLoss


class Bench:
    """A store with a disk that works when told to, and the answers that it gave."""

    def __init__(self, data_dir: Path) -> None:
        self.thread = ManualThread()
        self.store = CatalogueStore(data_dir, self.thread.submit)
        self.catalogue = self.store.load(50)
        self.told: list[Any] = []

    def create(self, name: str) -> None:
        self.store.change(
            lambda draft: draft.create(name, 1, topic_id=self.store.new_topic_id()), self.told.append
        )

    def delete(self, name: str) -> None:
        self.store.change(lambda draft: draft.delete(name), self.told.append)

    def names(self) -> list[str]:
        return [topic.name for topic in self.catalogue if topic.name != OFFSETS_TOPIC]

    def names_on_disk(self) -> list[str]:
        return names_on_disk(self.store.path.parent)


def names_on_disk(data_dir: Path) -> list[str]:
    stored = CatalogueStore(data_dir, ManualThread().submit).load(50)
    return [topic.name for topic in stored if topic.name != OFFSETS_TOPIC]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_new_directory_gets_a_catalogue_whose_ids_stay(tmp_path: Path) -> None:
    first = Bench(tmp_path)
    assert first.names() == []
    assert first.catalogue.offsets_topic.partitions == 50
    again = CatalogueStore(tmp_path, ManualThread().submit).load(50)
    assert again.offsets_topic == first.catalogue.offsets_topic


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
    bench.thread.run_one()
    assert bench.names() == bench.names_on_disk() == ["c"]
    assert [each.name for each in bench.told[2:]] == ["a", "c"]


def test_a_write_that_the_system_refuses_is_a_storage_error(tmp_path: Path) -> None:
    class Full(FragileFileSystem):
        def fsync_dir(self, path: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = CatalogueStore(tmp_path, ManualThread().submit, fs=Full(1000))
    with pytest.raises(StorageFull, match=r"catalogue\.json: writing the catalogue failed: No space left"):
        store.load(50)


def test_an_edit_that_fails_does_not_spoil_the_others(bench: Bench) -> None:
    def broken(draft: Catalogue) -> None:
        draft.create("half", 1, topic_id=b"h" * 16)
        raise LookupError("a bug")

    bench.create("a")
    bench.store.change(broken, bench.told.append)
    bench.create("b")
    bench.thread.run_all()
    assert bench.names() == bench.names_on_disk() == ["a", "b"]
    assert isinstance(bench.told[1], LookupError)
    assert isinstance(bench.told[2], Topic)


def test_one_who_cannot_be_told_does_not_keep_the_others_from_it(bench: Bench) -> None:
    def deaf(_outcome: object) -> None:
        raise ConnectionError("gone")

    bench.create("a")
    bench.store.change(lambda draft: draft.create("b", 1, topic_id=b"b" * 16), deaf)
    bench.create("c")
    bench.thread.run_one()
    with pytest.raises(ExceptionGroup) as caught:
        bench.thread.run_one()
    assert [type(error) for error in caught.value.exceptions] == [ConnectionError]
    assert [each.name for each in bench.told] == ["a", "c"]


def test_an_answer_may_ask_for_the_next_change(bench: Bench) -> None:
    bench.store.change(
        lambda draft: draft.create("a", 1, topic_id=b"a" * 16), lambda _outcome: bench.create("b")
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
    # in two writes; a new topic of the same name does not hide that the old one is gone
    assert reports == [(["b"], ["a", "c"], 3), (["a"], ["a", "c"], 4)]


def test_another_number_of_offsets_partitions_is_refused(tmp_path: Path) -> None:
    Bench(tmp_path)
    with pytest.raises(OffsetsTopicChanged, match=r"is 60, but this data was made with 50"):
        CatalogueStore(tmp_path, ManualThread().submit).load(60)


def test_a_damaged_file_refuses_the_start_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_bytes(b'{"version": 1, oops')
    with pytest.raises(CorruptCatalogue, match=r"catalogue\.json at byte 15: JSON is malformed"):
        CatalogueStore(tmp_path, ManualThread().submit).load(50)
    assert path.read_bytes() == b'{"version": 1, oops'


def test_a_file_that_cannot_be_read_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").mkdir()
    with pytest.raises(StorageError, match="reading the catalogue failed"):
        CatalogueStore(tmp_path, ManualThread().submit).load(50)


# Before every operation of a write, and in the middle of what it writes.
CRASHES = [(operations, 0) for operations in range(10)] + [
    (2, torn_bytes) for torn_bytes in range(1, 600, 37)
]


@pytest.mark.parametrize(("operations", "torn_bytes"), CRASHES)
def test_a_crash_leaves_the_old_catalogue_or_the_new_one(
    tmp_path: Path, operations: int, torn_bytes: int
) -> None:
    before = Bench(tmp_path)
    before.create("old")
    before.thread.run_all()
    fs = FragileFileSystem(operations, torn_bytes)
    thread = ManualThread()
    store = CatalogueStore(tmp_path, thread.submit, fs=fs)
    store.load(50)
    told: list[Any] = []
    store.change(lambda draft: draft.create("new", 1, topic_id=b"n" * 16), told.append)
    try:
        thread.run_one()
    except PowerLoss:
        assert told == []
    assert names_on_disk(tmp_path) == (["new", "old"] if "rename" in fs.log else ["old"])
    if told:
        assert fs.log == ["open", "truncate", "pwrite", "fsync", "rename", "fsync_dir"]
    # what a crash leaves lying around is not in the way of the next change
    after = Bench(tmp_path)
    after.create("later")
    after.thread.run_all()
    assert "later" in names_on_disk(tmp_path)
