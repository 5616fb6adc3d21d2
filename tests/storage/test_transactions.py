# SPDX-License-Identifier: Apache-2.0
"""Transactions in a foreign log: what Kafka would show of them is what we show."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import GroupId, Offset
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import read_checked_batch
from storage.format.record_decoder import RecordDecoder
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    UnknownRecord,
)
from storage.format.transaction_replay import LogReplay
from tests.storage.foreign import NOW, control, marker, plain, transactional


def offset(value: int | None, partition: int = 0, group: str = "g") -> OffsetCommitRecord:
    committed = None if value is None else OffsetAndMetadata(Offset(value), -1, "", NOW)
    return OffsetCommitRecord(GroupId(group), "t", partition, committed)


def shown(*batches: bytes) -> dict[tuple[str, int], int]:
    """The offsets that are left after these batches, by group and partition."""
    return replayed(*batches)[0]


def replayed(*batches: bytes) -> tuple[dict[tuple[str, int], int], LogReplay]:
    replay = LogReplay(RecordDecoder())
    offsets: dict[tuple[str, int], int] = {}
    for batch in batches:
        for record in replay.replay(read_checked_batch(batch)):
            if isinstance(record, TopicOffsetCommits):
                offsets |= {(record.group, each): value.offset for each, value in record.values.items()}
                continue
            assert isinstance(record, OffsetCommitRecord)
            if record.value is None:
                offsets.pop((record.group, record.partition), None)
            else:
                offsets[record.group, record.partition] = record.value.offset
    return offsets, replay


def test_an_offset_in_a_transaction_shows_once_that_is_committed() -> None:
    held = transactional([offset(5)], 0, 9)
    assert shown(held) == {}
    assert shown(held, marker(1, 9, commit=True)) == {("g", 0): 5}


def test_an_aborted_transaction_leaves_what_was_there_before() -> None:
    before = plain([offset(4)], 0)
    held = transactional([offset(5), offset(6, 1)], 1, 9)
    assert shown(before, held, marker(3, 9, commit=False)) == {("g", 0): 4}


def test_a_transaction_without_an_end_is_counted_and_not_shown() -> None:
    offsets, replay = replayed(
        plain([offset(4)], 0),
        transactional([offset(5), offset(6, 1)], 1, 9),
        transactional([offset(7, 2)], 3, 10),
        transactional([offset(8, 3)], 4, 11),
        marker(5, 11, commit=True),
    )
    assert offsets == {("g", 0): 4, ("g", 3): 8}
    assert replay.open_transaction_counts == (2, 3)


def test_a_marker_ends_the_transaction_of_its_producer_alone() -> None:
    held = [transactional([offset(5)], 0, 9), transactional([offset(6, 1)], 1, 10)]
    assert shown(*held, marker(2, 10, commit=True)) == {("g", 1): 6}
    assert shown(*held, marker(2, 77, commit=True)) == {}


def test_a_producer_begins_anew_after_its_marker() -> None:
    first = [transactional([offset(5)], 0, 9), marker(1, 9, commit=False)]
    second = [transactional([offset(6, 1)], 2, 9), marker(3, 9, commit=True)]
    assert shown(*first, *second) == {("g", 1): 6}


def test_a_later_plain_commit_wins_over_a_transaction_that_is_committed_after_it() -> None:
    batches = [transactional([offset(5)], 0, 9), plain([offset(9)], 1), marker(2, 9, commit=True)]
    assert shown(*batches) == {("g", 0): 9}


def test_an_earlier_plain_commit_does_not() -> None:
    batches = [plain([offset(9)], 0), transactional([offset(5)], 1, 9), marker(2, 9, commit=True)]
    assert shown(*batches) == {("g", 0): 5}


@pytest.mark.parametrize("markers", [(9, 10), (10, 9)])
def test_of_two_transactions_the_later_record_wins_whatever_ends_first(markers: tuple[int, int]) -> None:
    held = [transactional([offset(5)], 0, 9), transactional([offset(6)], 1, 10)]
    ends = [marker(2 + n, producer, commit=True) for n, producer in enumerate(markers)]
    assert shown(*held, *ends) == {("g", 0): 6}


def test_a_tombstone_takes_waiting_offsets_with_it() -> None:
    batches = [
        transactional([offset(5), offset(6, 1)], 0, 9),
        plain([offset(None)], 2),
        marker(3, 9, commit=True),
    ]
    assert shown(*batches) == {("g", 1): 6}


def test_within_a_transaction_the_last_word_counts() -> None:
    words = [offset(5), offset(None), offset(6), offset(7, 1), offset(None, 1)]
    assert shown(transactional(words, 0, 9), marker(5, 9, commit=True)) == {("g", 0): 6}


def test_records_of_other_kinds_wait_for_nothing() -> None:
    group = GroupMetadataRecord(GroupId("g"), GroupMetadataValue("consumer", 1, None, None, NOW, ()))
    unknown = UnknownRecord(3, b"\0\3\0\1g", b"\0\0")
    replay = LogReplay(RecordDecoder())
    batch = read_checked_batch(transactional([group, unknown, offset(5)], 0, 9))
    assert replay.replay(batch) == [group, unknown]


def test_damage_in_a_transaction_is_named() -> None:
    replay = LogReplay(RecordDecoder())
    bad = read_checked_batch(transactional([UnknownRecord(1, b"\0\1\0\1", b"")], 7, 9))
    with pytest.raises(CorruptRecord, match="record of offset 7"):
        replay.replay(bad)
    with pytest.raises(CorruptBatch, match="control record is cut short"):
        replay.replay(read_checked_batch(control(8, 9, b"\0\0")))


# --- against Kafka's rule, written down as Kafka has it: by the offset of each record ---


@dataclass
class Broker:
    """OffsetMetadataManager's books."""

    offsets: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    pending: dict[int, dict[tuple[str, int], tuple[int, int]]] = field(default_factory=dict)

    def commit(self, at: int, producer: int, key: tuple[str, int], value: int | None) -> None:
        if value is None:
            self.offsets.pop(key, None)
            for waiting in self.pending.values():
                waiting.pop(key, None)
        elif producer < 0:
            self.offsets[key] = (at, value)
        else:
            self.pending.setdefault(producer, {})[key] = (at, value)

    def end(self, producer: int, commit: bool) -> None:
        for key, waiting in self.pending.pop(producer, {}).items():
            if commit and (key not in self.offsets or waiting[0] > self.offsets[key][0]):
                self.offsets[key] = waiting


keys = st.tuples(st.sampled_from(["g", "h"]), st.integers(0, 2))
producers = st.integers(-1, 3)
commits = st.tuples(
    producers,
    st.lists(st.tuples(keys, st.none() | st.integers(0, 99)), min_size=1, max_size=4),
)
ends = st.tuples(st.integers(0, 3), st.booleans())


@given(st.lists(commits | ends, max_size=30))
def test_any_log_shows_what_kafkas_rule_says(steps: list[tuple[int, object]]) -> None:
    broker, batches, at = Broker(), [], 0
    for producer, what in steps:
        if isinstance(what, bool):
            broker.end(producer, what)
            batches.append(marker(at, producer, commit=what))
            at += 1
            continue
        assert isinstance(what, list)
        records: list[Record] = []
        for (group, partition), value in what:
            broker.commit(at + len(records), producer, (group, partition), value)
            records.append(offset(value, partition, group))
        batches.append(plain(records, at) if producer < 0 else transactional(records, at, producer))
        at += len(records)
    assert shown(*batches) == {key: value for key, (_, value) in broker.offsets.items()}
