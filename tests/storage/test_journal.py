# SPDX-License-Identifier: Apache-2.0
"""The journal's file: what was written is read back, from any prefix; damage is known from a torn end."""

from collections.abc import Sequence
from pathlib import Path
from struct import Struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.errors import CorruptLog
from storage.journal.journal import FILE_MAGIC, HEADER_BLOCK_BYTES, Entry, Journal, remove_or_recycle
from storage.journal.journal_reader import JournalContents, read_journal, read_journals
from tests.storage.faulty import FaultyFileSystem

ROOT = Path("/journal")
STEP = 8192

entries = st.lists(
    st.builds(Entry, st.integers(0, 49), st.integers(0, 1 << 62), st.binary(max_size=300)),
    min_size=1,
    max_size=5,
)


def written(
    flushes: Sequence[Sequence[Entry]], *, fs: FaultyFileSystem | None = None, synced: bool = True
) -> tuple[FaultyFileSystem, Path]:
    """A journal with these flushes, from 1 on; `synced` as in a node that syncs each of them."""
    fs = fs or FaultyFileSystem(ROOT)
    journal = Journal.create(fs, ROOT, 1, step_bytes=STEP)
    for flush, content in enumerate(flushes, 1):
        journal.append(flush, flush - 1 if synced else 0, content, durable=synced)
    journal.close()
    return fs, journal.path


def flushes_of(contents: JournalContents) -> list[list[Entry]]:
    """The entries that were read, by flush."""
    return [list(frame.entries) for frame in contents.frames]


@given(st.lists(entries, max_size=20), st.booleans())
def test_what_was_written_is_read(flushes: list[list[Entry]], durable: bool) -> None:
    fs, path = written(flushes, synced=durable)
    contents = read_journal(fs, path, 1)
    assert flushes_of(contents) == flushes
    assert [frame.flush for frame in contents.frames] == list(range(1, len(flushes) + 1))
    assert contents.lost_bytes == 0
    assert fs.inode(path).data[contents.frames[-1].end if flushes else HEADER_BLOCK_BYTES :].count(0) > 0 or (
        len(fs.inode(path).data) % STEP == 0
    )


FLUSHES: list[list[Entry]] = [
    [Entry(Partition(0), Offset(0), b"first")],
    [Entry(Partition(0), Offset(1), b"second"), Entry(Partition(7), Offset(100), b"x" * 50)],
    [Entry(Partition(3), Offset(5), b"third")],
]


def test_a_journal_torn_at_any_byte_of_its_last_frame_holds_all_before_it() -> None:
    fs, path = written(FLUSHES)
    whole = bytes(fs.inode(path).data)
    last = read_journal(fs, path, 1).frames[-1]
    for cut in range(last.position, last.end):
        fs.inode(path).data[:] = whole[:cut] + bytes(len(whole) - cut)
        contents = read_journal(fs, path, 1)
        assert flushes_of(contents) == FLUSHES[:2]


def test_a_journal_that_is_shorter_than_it_was_is_damage_wherever_it_was_cut() -> None:
    fs, path = written(FLUSHES)
    whole = bytes(fs.inode(path).data)
    frames = read_journal(fs, path, 1).frames
    for size in range(HEADER_BLOCK_BYTES, len(whole), 7):
        fs.inode(path).data[:] = whole[:size]
        flush = sum(frame.end <= size for frame in frames)
        last = f"its last whole flush is {flush}," if flush else "no flush is left"
        with pytest.raises(CorruptLog, match=f"at byte {size}: the file was cut, it had 8192 bytes; {last}"):
            read_journal(fs, path, 1)
        assert flushes_of(read_journal(fs, path, 1, leniently=True)) == FLUSHES[:flush]
    for size in range(0, HEADER_BLOCK_BYTES, 500):
        fs.inode(path).data[:] = whole[:size]
        with pytest.raises(CorruptLog, match=f"header is damaged, and it has {size} bytes"):
            read_journal(fs, path, 1)


@pytest.mark.parametrize("durable", [True, False])
def test_a_journal_that_has_grown_is_damage_where_it_was_cut_since_then(durable: bool) -> None:
    flushes: list[list[Entry]] = [[Entry(Partition(0), Offset(n), b"x" * 1000)] for n in range(15)]
    fs, path = written(flushes, synced=durable)
    whole = bytes(fs.inode(path).data)
    assert len(whole) == 3 * STEP
    for size in (STEP, STEP + 1, 2 * STEP, len(whole) - 1):
        fs.inode(path).data[:] = whole[:size]
        with pytest.raises(CorruptLog, match=f"at byte {size}: the file was cut, it had {len(whole)} bytes"):
            read_journal(fs, path, 1)


def test_what_a_power_loss_takes_back_of_a_growth_that_nobody_was_promised_is_no_damage() -> None:
    flushes: list[list[Entry]] = [[Entry(Partition(0), Offset(n), b"x" * 1000)] for n in range(15)]
    fs, path = written(flushes, synced=False)
    fs.restart(power_loss=True)
    del fs.inode(path).data[STEP:]
    contents = read_journal(fs, path, 1)
    assert flushes_of(contents) == flushes[: len(contents.frames)]


def test_a_journal_of_the_first_version_is_read() -> None:
    fs, path = written(FLUSHES)
    data = fs.inode(path).data
    facts = Struct(">8sH6xQQ8s").pack(FILE_MAGIC, 1, 1, 0, bytes(data[32:40]))
    data[:48] = facts + crc32c(facts).to_bytes(4, "big") + bytes(4)
    assert flushes_of(read_journal(fs, path, 1)) == FLUSHES


def test_any_damage_to_the_last_frame_is_its_end() -> None:
    fs, path = written(FLUSHES)
    whole = bytes(fs.inode(path).data)
    last = read_journal(fs, path, 1).frames[-1]
    for position in range(last.position, last.end):
        fs.inode(path).data[position] ^= 0x10
        assert flushes_of(read_journal(fs, path, 1)) == FLUSHES[:2]
        fs.inode(path).data[:] = whole


def test_damage_to_a_frame_that_was_on_disk_is_reported_and_kept() -> None:
    fs, path = written(FLUSHES)
    whole = bytes(fs.inode(path).data)
    frames = read_journal(fs, path, 1).frames
    for frame in frames[:2]:
        for position in range(frame.position, frame.end):
            fs.inode(path).data[position] ^= 0x10
            damaged = bytes(fs.inode(path).data)
            with pytest.raises(CorruptLog, match=f"at byte {frame.position}: a frame is damaged"):
                read_journal(fs, path, 1)
            assert fs.inode(path).data == damaged
            fs.inode(path).data[:] = whole


def test_damage_to_a_frame_that_nobody_was_promised_ends_the_journal() -> None:
    fs, path = written(FLUSHES, synced=False)
    second = read_journal(fs, path, 1).frames[1]
    fs.inode(path).data[second.position + 30] ^= 0x10
    contents = read_journal(fs, path, 1)
    assert flushes_of(contents) == FLUSHES[:1]
    assert contents.lost_bytes > 0


def test_damage_to_the_header_is_reported() -> None:
    fs, path = written(FLUSHES)
    whole = bytes(fs.inode(path).data)
    for position in range(40):
        if 10 <= position < 16:
            continue  # padding, which is not read, but in the checksum as well
        fs.inode(path).data[position] ^= 0x10
        with pytest.raises(CorruptLog):
            read_journal(fs, path, 1)
        fs.inode(path).data[:] = whole
    fs.inode(path).data[:] = b""
    with pytest.raises(CorruptLog):
        read_journal(fs, path, 1)


def test_a_frame_in_a_clients_bytes_is_no_frame() -> None:
    fs, path = written(FLUSHES)
    frame = read_journal(fs, path, 1).frames[0]
    copied = bytes(fs.inode(path).data[frame.position : frame.end])
    fs, path = written(
        [[Entry(Partition(0), Offset(0), b"first")], [Entry(Partition(1), Offset(0), b"padding" + copied)]]
    )
    last = read_journal(fs, path, 1).frames[-1]
    fs.inode(path).data[last.position + 10] ^= 1
    assert flushes_of(read_journal(fs, path, 1)) == [[Entry(Partition(0), Offset(0), b"first")]]


def test_the_space_of_a_retired_journal_is_used_again_and_its_frames_are_not() -> None:
    fs, path = written([[Entry(Partition(0), Offset(n), b"old" * 50)] for n in range(60)])
    remove_or_recycle(fs, path, spare_bytes_max=1 << 20)
    size = len(fs.inode(ROOT / "spare").data)
    assert size > STEP
    journal = Journal.create(fs, ROOT, 2, step_bytes=STEP)
    assert len(fs.inode(journal.path).data) == size
    assert not fs.exists(ROOT / "spare")
    for flush in range(61, 64):
        journal.append(flush, flush - 1, [Entry(Partition(1), Offset(flush), b"new")], durable=True)
    contents = read_journal(fs, journal.path, 2)
    assert flushes_of(contents) == [[Entry(Partition(1), Offset(flush), b"new")] for flush in range(61, 64)]
    assert contents.lost_bytes == 0


def test_a_retired_journal_that_is_too_large_or_one_too_many_is_removed() -> None:
    fs, path = written(FLUSHES)
    remove_or_recycle(fs, path, spare_bytes_max=STEP - 1)
    assert fs.listdir(ROOT) == []
    fs, path = written(FLUSHES, fs=fs)
    remove_or_recycle(fs, path, spare_bytes_max=STEP)
    fs.open(path, create=True)
    remove_or_recycle(fs, path, spare_bytes_max=STEP)
    assert fs.listdir(ROOT) == ["spare"]


def test_frames_that_a_later_journal_declares_void_are_left_out() -> None:
    fs, _ = written(FLUSHES)
    Journal.create(fs, ROOT, 2, step_bytes=STEP, discarded_from=3).append(
        3, 2, [Entry(Partition(9), Offset(9), b"again")], durable=True
    )
    first, second = read_journals(fs, ROOT)
    assert flushes_of(first) == FLUSHES[:2]
    assert flushes_of(second) == [[Entry(Partition(9), Offset(9), b"again")]]


def test_a_repair_leaves_out_the_frame_that_failed() -> None:
    fs, _ = written(FLUSHES)
    (only,) = read_journals(fs, ROOT, last_flush=2)
    assert flushes_of(only) == FLUSHES[:2]


def test_on_a_real_disk(tmp_path: Path) -> None:
    fs = RealFileSystem()
    journal = Journal.create(fs, tmp_path, 4, step_bytes=STEP)
    big = [Entry(Partition(n), Offset(n), bytes((n,)) * 3000) for n in range(10)]
    for flush in range(1, 4):
        journal.append(flush, flush - 1, big, durable=flush % 2 == 1)
    assert journal.unsynced
    journal.sync()
    assert not journal.unsynced
    journal.close()
    contents = read_journal(fs, journal.path, 4)
    assert flushes_of(contents) == [big] * 3
    assert journal.path.stat().st_size % STEP == 0
