# SPDX-License-Identifier: Apache-2.0
"""For each check a log that it must flag, in a partition of its own; and ordinary logs, which none may flag."""

from collections.abc import Callable, Mapping
from pathlib import Path
from struct import Struct

from coordinator.migration.ledger import ledger_group_id
from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import JOURNAL_DIR, OFFSETS_TOPIC
from storage.format.batch import read_unchecked_batch
from storage.format.batch_format import CRC_START
from storage.format.records import UnknownRecord
from storage.journal.journal_registry import write_registry_file
from tests.audit.logs import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    PARTITIONS,
    Log,
    commit,
    group_in,
    healthy,
    make_batch,
    member,
    patched,
    stored,
)

_INT = Struct(">i")
_LONG = Struct(">q")
_BASE_OFFSET_AT = 0
_EPOCH_AT = 12
_LENGTH_AT = 8


def flipped_bit(log: Log) -> None:
    """One bit of a batch in the middle is another."""
    healthy(log)
    data = bytearray(log.file.read_bytes())
    batch = read_unchecked_batch(bytes(data), read_unchecked_batch(bytes(data)).end)
    data[batch.position + CRC_START + 60] ^= 0x10
    log.file.write_bytes(data)


def cut_batch(log: Log) -> None:
    """Bytes are missing from the middle of the file."""
    healthy(log)
    data = log.file.read_bytes()
    first = read_unchecked_batch(data)
    log.file.write_bytes(data[: first.end - 20] + data[first.end + 20 :])


def wrong_record_lengths(log: Log) -> None:
    """A batch whose checksum is right, and whose record says that it is longer than the batch."""
    healthy(log)
    batch = make_batch([commit(log.group, 5)], log.next_offset)
    log.raw(patched(batch, 61, b"\x7e"))


def lower_offset(log: Log) -> None:
    """A batch comes with offsets from long before."""
    healthy(log)
    log.raw(make_batch([commit(log.group, 101)], 2))


def same_offset_twice(log: Log) -> None:
    """The last batch is there twice."""
    healthy(log)
    log.raw(make_batch([commit(log.group, 100)], log.next_offset - 1))


def lost_batch(log: Log) -> None:
    """A batch is not there."""
    healthy(log).skip(3).add(commit(log.group, 102))


def lost_segment(log: Log) -> None:
    """A segment above the cleaner's checkpoint is not there."""
    healthy(log).roll()
    lost = log.file
    log.add(commit(log.group, 103)).roll().add(commit(log.group, 104))
    lost.unlink()


def front_segment_lost(log: Log) -> None:
    """The first segment is not there; a cleaner keeps that file, even with nothing in it."""
    healthy(log)
    lost = log.file
    healthy(log.roll())
    lost.unlink()


def front_segment_cut(log: Log) -> None:
    """The first segment has nothing in it, and no cleaner has been there."""
    healthy(log)
    lost = log.file
    healthy(log.roll())
    lost.write_bytes(b"")


def old_epoch_replayed(log: Log) -> None:
    """A former leader writes after its successor."""
    healthy(log).add(commit(log.group, 105), epoch=7).add(commit(log.group, 106), epoch=6)


def directory_of_another(log: Log) -> None:
    """Records of two groups that belong to the next partition, and nothing else."""
    log.group = group_in((log.partition + 1) % PARTITIONS)
    healthy(log)
    other = group_in((log.partition + 1) % PARTITIONS, 1)
    log.add(commit(other, 7), stored(other, 1))


def stray_group(log: Log) -> None:
    """Records of a group that belongs to the next partition, beside others."""
    healthy(log)
    group = group_in((log.partition + 1) % PARTITIONS, 1)
    log.add(commit(group, 7), stored(group, 1))


def broken_key(log: Log) -> None:
    """The key of an offset ends before its topic."""
    healthy(log).add(UnknownRecord(1, b"\x00\x01\x00\x10short", b""))


def broken_value(log: Log) -> None:
    """The value of an offset has an unknown version."""
    key = b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x00"
    healthy(log).add(UnknownRecord(1, key, b"\x00\x63"))


def unknown_type(log: Log) -> None:
    """A key of version 99."""
    healthy(log).add(UnknownRecord(99, b"\x00\x63anything", b"value"))


def lower_commit(log: Log) -> None:
    """Somebody commits less than before."""
    healthy(log).add(commit(log.group, 99))


def lower_generation(log: Log) -> None:
    """A group is stored with the generation before its last one."""
    healthy(log).add(stored(log.group, 2, [member("b")]))


def nobody(log: Log) -> None:
    """Offsets of a group that is not stored."""
    log.add(commit(log.group, 1))


def long_empty(log: Log) -> None:
    """A group that lost its last member eight days ago."""
    log.add(stored(log.group, 4, at=NOW - 8 * DAY), at=NOW - 8 * DAY)


def should_have_expired(log: Log) -> None:
    """An offset of a simple consumer, eight days old."""
    log.add(commit(log.group, 1, at=NOW - 8 * DAY), at=NOW - 8 * DAY)


def old_tombstone(log: Log) -> None:
    """A tombstone in the compacted part for four days."""
    log.add(commit(log.group, None, topic="gone"), at=NOW - 4 * DAY).roll()
    healthy(log)


def left_dirty(log: Log) -> None:
    """Closed segments that no cleaner has been at."""
    healthy(log).roll().add(commit(log.group, 107))


def twice_after_compaction(log: Log) -> None:
    """The same key twice below the cleaner's checkpoint."""
    healthy(log).roll().add(commit(log.group, 108))


def open_transaction(log: Log) -> None:
    """A transaction that has been open for an hour."""
    healthy(log).add(commit(log.group, 109), producer=9)


def future(log: Log) -> None:
    """A commit from tomorrow."""
    healthy(log).add(commit(log.group, 110, at=NOW + DAY))


def clock_back(log: Log) -> None:
    """A batch that is three hours older than the one before."""
    healthy(log).add(commit(log.group, 111), at=NOW - 4 * HOUR)


def long_metadata(log: Log) -> None:
    """Metadata of 5,000 characters."""
    healthy(log).add(commit(log.group, 112, metadata="x" * 5_000))


def storm(log: Log) -> None:
    """Thirty generations within a quarter of an hour."""
    for generation in range(1, 31):
        log.add(stored(log.group, generation, [member("a")]), at=NOW - HOUR + generation * MINUTE // 2)


def flapping(log: Log) -> None:
    """A member that comes back under a new id ten times within an hour."""
    for generation in range(1, 12):
        members = [member("steady", "steady"), member(f"flapping-{generation}", "flapping")]
        log.add(stored(log.group, generation, members), at=NOW - HOUR + generation * MINUTE)


def hot(log: Log) -> None:
    """A partition with far more records than all the others together."""
    healthy(log)
    for number in range(100):
        log.add(*(commit(log.group, 200 + number, partition=part, topic="hot") for part in range(120)))


MUST_FLAG: Mapping[str, tuple[str, Callable[[Log], None]]] = {
    "flipped bit": ("batch_crc", flipped_bit),
    "cut batch": ("batch_crc", cut_batch),
    "wrong record lengths": ("batch_damage", wrong_record_lengths),
    "lower offset": ("offset_order", lower_offset),
    "same offset twice": ("offset_overlap", same_offset_twice),
    "lost batch": ("offset_gap", lost_batch),
    "lost segment": ("offset_gap", lost_segment),
    "front segment lost": ("offset_gap", front_segment_lost),
    "front segment cut": ("offset_gap", front_segment_cut),
    "old epoch replayed": ("leader_epoch_back", old_epoch_replayed),
    "directory of another partition": ("directory_misplaced", directory_of_another),
    "stray group": ("wrong_partition", stray_group),
    "broken key": ("undecodable", broken_key),
    "broken value": ("undecodable", broken_value),
    "unknown type": ("unknown_type", unknown_type),
    "lower commit": ("committed_offset_back", lower_commit),
    "lower generation": ("generation_back", lower_generation),
    "nobody": ("offsets_without_group", nobody),
    "long empty": ("group_empty_too_long", long_empty),
    "should have expired": ("offset_expired", should_have_expired),
    "old tombstone": ("tombstone_overdue", old_tombstone),
    "left dirty": ("compaction_overdue", left_dirty),
    "twice after compaction": ("compaction_duplicate", twice_after_compaction),
    "open transaction": ("transaction_open_too_long", open_transaction),
    "future": ("future_time", future),
    "clock back": ("clock_jump", clock_back),
    "long metadata": ("metadata_too_long", long_metadata),
    "storm": ("rebalance_storm", storm),
    "flapping": ("members_flapping", flapping),
    "hot": ("hot_partition", hot),
}
"""By what was done: the check that must find it, and how it is done. They are in partitions 0, 1, 2..."""

ALSO: Mapping[str, set[str]] = {
    "should have expired": {"offsets_without_group"},
    "lost segment": {"compaction_overdue"},
}
"""What other checks see as well, and may."""


def whole_again(log: Log) -> None:
    """What looks unusual, and is not: compressed batches, transactions that end, a deleted group, a torn tail."""
    group = log.group
    log.add(stored(group, 8, [member("a")]), at=NOW - 5 * HOUR)
    log.add(commit(group, 10), compression=4, at=NOW - 5 * HOUR)
    log.add(commit(group, 20), producer=1, at=NOW - 4 * HOUR).end("commit", 1, at=NOW - 4 * HOUR)
    log.add(commit(group, 5), producer=2, at=NOW - 3 * HOUR).end("abort", 2, at=NOW - 3 * HOUR)
    log.add(commit(group, None), stored(group, 9), at=NOW - 2 * HOUR)
    log.add(commit(group, 30), UnknownRecord(3, b"\x00\x03\x00\x02g3", b"\x00\x00"), epoch=3)
    with log.file.open("ab") as stream:
        stream.write(make_batch([commit(group, 31)], log.next_offset)[:50])


def compacted(log: Log) -> None:
    """A log with holes where compaction has been."""
    log.add(stored(log.group, 1, [member("a")])).skip(5).add(commit(log.group, 3)).skip(2).roll()
    log.add(commit(log.group, 4)).add(commit(log.group, 5))


def compacted_to_nothing_in_front(log: Log) -> None:
    """The cleaner has emptied the first segment, and the head of the one behind it."""
    log.skip(10).roll().skip(3).add(stored(log.group, 1, [member("a")])).add(commit(log.group, 3)).roll()
    log.add(commit(log.group, 4))


def taken_over(log: Log) -> None:
    """Marks of two groups: one that was taken over in parts, and one that was given back and taken over again."""
    ledger = ledger_group_id(Partition(log.partition), PARTITIONS)
    healthy(log)
    for topic, marks in {log.group: (1, 0), "other": (0, 1, None, 0)}.items():
        for mark in marks:
            log.add(commit(ledger, mark, topic=topic, at=NOW - 8 * DAY), at=NOW - 30 * MINUTE)


MUST_PASS: Mapping[str, Callable[[Log], object]] = {
    "healthy": healthy,
    "whole again": whole_again,
    "compacted": compacted,
    "compacted to nothing in front": compacted_to_nothing_in_front,
    "empty": lambda log: None,
    "taken over": taken_over,
}


def write_all(log_dir: Path) -> dict[str, int]:
    """Write all of them under `log_dir`, and return in which partition each is."""
    made = {**{name: make for name, (_, make) in MUST_FLAG.items()}, **MUST_PASS}
    places: dict[str, int] = {}
    log_dir.mkdir(parents=True)
    write_registry_file(RealFileSystem(), log_dir / JOURNAL_DIR, {})  # a node wrote it
    for partition in range(PARTITIONS):
        log = Log(log_dir, partition)
        name = list(made)[partition] if partition < len(made) else f"ordinary {partition}"
        made.get(name, healthy)(log)
        places[name] = partition
    checkpoint = {
        "twice after compaction": 13,
        "old tombstone": 1,
        "compacted": 9,
        "compacted to nothing in front": 15,
        "front segment lost": 6,
        "front segment cut": 0,
        "lost segment": 0,
        "left dirty": 0,
    }
    write_offsets(
        RealFileSystem(),
        log_dir / "cleaner-offset-checkpoint",
        {(OFFSETS_TOPIC, Partition(places[name])): Offset(offset) for name, offset in checkpoint.items()},
    )
    return places
