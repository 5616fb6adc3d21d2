# SPDX-License-Identifier: Apache-2.0
"""Planning and reading, without Spark: every batch once, whatever happens to the files meanwhile."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.errors import AuditError
from audit.schema import CHANGED_MEANWHILE
from audit.source.plan import Task, plan
from audit.source.read import read_part, skip_before_log_start
from protocol.newtypes import Offset, Partition
from storage.columns.batch_finder import Chunk, iter_segment_chunks
from storage.disk.checkpoint_file import write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import segment_name
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

Row = dict[str, Any]
COLUMNS = (
    "file",
    "position",
    "batch_bytes",
    "base_offset",
    "offset",
    "committed_offset",
    "damage",
    "crc_ok",
    "tail",
)


def rows(tasks: Sequence[Task]) -> list[Row]:
    """All that the tasks read, in order."""
    return [
        row
        for task in tasks
        for part in task
        for found in read_part(part, COLUMNS)
        for row in pa.Table.from_batches([found]).to_pylist()
    ]


def offsets(found: Sequence[Row]) -> list[int]:
    """The offsets that the rows have."""
    return [row["offset"] for row in found]


def write(directory: Path, *segments: bytes, first: Sequence[int] = (0,)) -> Path:
    """A partition of these segments; returns its log directory."""
    partition = directory / "__consumer_offsets-3"
    partition.mkdir(exist_ok=True)
    for base_offset, data in zip(first, segments, strict=True):
        (partition / segment_name(Offset(base_offset))).write_bytes(data)
    return directory


def batches(count: int, first: int = 0) -> list[bytes]:
    """Batches of one to three records that follow each other."""
    made, offset = [], first
    for label in range(count):
        made.append(batch(label, offset, 1 + label % 3))
        offset += 1 + label % 3
    return made


@given(
    count=st.integers(1, 30),
    range_bytes=st.integers(1, 2_000),
    flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), max_size=3),
    cut=st.integers(0, 100),
)
@example(count=8, range_bytes=1, flips=[(612, 8)], cut=0)  # A length that ends within the next batch.
def test_ranges_of_any_size_hold_every_batch_once(
    count: int,
    range_bytes: int,
    flips: list[tuple[int, int]],
    cut: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = bytearray(b"".join(batches(count)))
    for at, flip in flips:
        data[at % len(data)] ^= flip
    log_dir = write(tmp_path_factory.mktemp("log"), bytes(data[: len(data) - cut % len(data)]))
    whole = rows(plan([str(log_dir)]))
    assert rows(plan([str(log_dir)], range_bytes=range_bytes, task_bytes=1)) == whole
    spans = sorted({(row["position"], row["batch_bytes"]) for row in whole})
    ends = [position + size for position, size in spans]
    assert [position for position, _ in spans] == [0, *ends[:-1]], "every byte belongs to one piece"
    assert ends[-1] == len(data) - cut % len(data)
    shutil.rmtree(log_dir)


def test_a_large_segment_is_read_in_ranges(tmp_path: Path) -> None:
    log_dir = write(tmp_path, b"".join(batches(60)))
    tasks = plan([str(log_dir)], range_bytes=1_000, task_bytes=1)
    assert len(tasks) > 5
    assert offsets(rows(tasks)) == list(range(120))
    assert len(plan([str(log_dir)])) == 1


@pytest.mark.parametrize("chunk_bytes", [1, 200, 1_000])
def test_a_batch_may_be_longer_than_what_is_read_at_once(chunk_bytes: int) -> None:
    data = b"".join(batches(20))
    pieces = [
        (chunk.position + start, chunk.position + end, chunk.damages)
        for chunk in iter_segment_chunks(
            lambda at, size: data[at : at + size],
            0,
            len(data),
            is_newest_segment=True,
            chunk_bytes=chunk_bytes,
        )
        for start, end in zip(chunk.starts, chunk.ends, strict=True)
    ]
    ends = [end for _, end, _ in pieces]
    assert [start for start, _, _ in pieces] == [0, *ends[:-1]]
    assert len(pieces) == 20
    assert not any(damages for _, _, damages in pieces)


def test_a_flipped_bit_costs_one_batch(tmp_path: Path) -> None:
    made = batches(5)
    data = bytearray(b"".join(made))
    data[len(made[0]) + 80] ^= 1
    (bad,) = [row for row in rows(plan([str(write(tmp_path, bytes(data)))])) if row["offset"] is None]
    assert (bad["base_offset"], bad["position"], bad["batch_bytes"]) == (1, len(made[0]), len(made[1]))
    assert bad["crc_ok"] is False
    assert bad["damage"].startswith("checksum 0x")


def test_bytes_that_are_no_batch_are_told_of_and_passed_over(tmp_path: Path) -> None:
    made = batches(3)
    log_dir = write(tmp_path, made[0] + b"nonsense" * 9 + made[1] + made[2])
    found = rows(plan([str(log_dir)]))
    assert offsets(found) == [0, None, 1, 2, 3, 4, 5]
    assert found[1]["damage"] == "no record batch starts here; the next good batch is 72 bytes on"
    assert (found[1]["crc_ok"], found[1]["base_offset"], found[1]["tail"]) == (None, None, False)


@pytest.mark.parametrize("newest", [True, False])
@pytest.mark.parametrize("left", [1, 20, 70])
def test_an_incomplete_batch_is_no_damage_at_the_end_of_the_log_only(
    tmp_path: Path, left: int, newest: bool
) -> None:
    made = batches(4)
    torn = made[0] + made[1] + made[2][:left]
    log_dir = write(tmp_path, torn) if newest else write(tmp_path, torn, made[3], first=(0, 6))
    found = rows(plan([str(log_dir)]))
    assert offsets(found) == [0, 1, 2, None, *([] if newest else [6])]
    assert found[3]["tail"] is newest
    assert (found[3]["damage"] is None) is newest


def test_space_that_was_taken_ahead_is_no_damage(tmp_path: Path) -> None:
    found = rows(plan([str(write(tmp_path, batches(1)[0] + bytes(5_000)))]))
    assert [(row["offset"], row["tail"], row["damage"]) for row in found] == [
        (0, False, None),
        (None, True, None),
    ]


@pytest.fixture
def segmented(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A log of offsets 0 to 39 in four segments."""
    made = batches(20)
    parts = [b"".join(made[number : number + 5]) for number in range(0, 20, 5)]
    firsts = [sum(1 + label % 3 for label in range(number)) for number in range(0, 20, 5)]
    log_dir = write(tmp_path, *parts, first=firsts)
    return log_dir, [log_dir / "__consumer_offsets-3" / segment_name(Offset(first)) for first in firsts]


def merged(paths: Sequence[Path]) -> Path:
    """A new file in the place of some segments, with all that they held, as compaction makes it."""
    content = b"".join(path.read_bytes() for path in paths)
    target = paths[0].with_name(paths[0].name + ".swap")
    target.write_bytes(content)
    return target


def replaced(paths: Sequence[Path]) -> None:
    """The first half of the segments become one."""
    swap = merged(paths[:2])
    for path in paths[:2]:
        path.rename(path.with_name(path.name + ".deleted"))
    swap.rename(paths[0])


def half_replaced(paths: Sequence[Path]) -> None:
    """The same, stopped before the new file got its name."""
    swap = merged(paths[:2])
    paths[0].rename(paths[0].with_name(paths[0].name + ".deleted"))
    assert swap.exists()
    assert paths[1].exists()


def rolled(paths: Sequence[Path]) -> None:
    """The log goes on in a new segment."""
    paths[-1].with_name(segment_name(Offset(39))).write_bytes(batch(99, 39))


@pytest.mark.parametrize("change", [replaced, half_replaced, rolled])
@pytest.mark.parametrize("range_bytes", [1_000_000, 300])
def test_a_change_between_planning_and_reading_loses_and_doubles_nothing(
    segmented: tuple[Path, list[Path]], change: Callable[[Sequence[Path]], None], range_bytes: int
) -> None:
    log_dir, paths = segmented
    tasks = plan([str(log_dir)], range_bytes=range_bytes, task_bytes=1)
    change(paths)
    found = rows(tasks)
    assert offsets(found) == list(range(39))
    assert {row["damage"] for row in found} == {None}


@pytest.mark.parametrize("change", [replaced, half_replaced])
def test_a_compaction_at_any_stage_is_planned_around(
    segmented: tuple[Path, list[Path]], change: Callable[[Sequence[Path]], None]
) -> None:
    log_dir, paths = segmented
    change(paths)
    assert offsets(rows(plan([str(log_dir)]))) == list(range(39))


def test_a_partition_that_goes_away_is_told_of(segmented: tuple[Path, list[Path]]) -> None:
    log_dir, paths = segmented
    tasks = plan([str(log_dir)])
    shutil.rmtree(paths[0].parent)
    found = rows(tasks)
    assert offsets(found) == [None] * 4
    assert all(row["damage"].startswith(CHANGED_MEANWHILE) for row in found)


def test_what_comes_after_planning_is_left_for_the_next_audit(tmp_path: Path) -> None:
    made = batches(4)
    log_dir = write(tmp_path, b"".join(made[:3]))
    tasks = plan([str(log_dir)])
    with (log_dir / "__consumer_offsets-3" / segment_name(Offset(0))).open("ab") as file:
        file.write(made[3])
    assert offsets(rows(tasks)) == list(range(6))


def test_a_batch_that_was_half_written_when_it_was_planned_is_read_whole(tmp_path: Path) -> None:
    made = batches(3)
    log_dir = write(tmp_path, made[0] + made[1] + made[2][:50])
    tasks = plan([str(log_dir)])
    with (log_dir / "__consumer_offsets-3" / segment_name(Offset(0))).open("ab") as file:
        file.write(made[2][50:])
    assert offsets(rows(tasks)) == list(range(6))


def test_a_directory_that_is_a_partition_itself(tmp_path: Path) -> None:
    log_dir = write(tmp_path, *batches(1))
    assert offsets(rows(plan([str(log_dir / "__consumer_offsets-3")]))) == [0]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="gone: No such file or directory"):
        plan([str(tmp_path / "gone")])


# ------------------------------------------------------------------ journals


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    """A log that is being written, with three batches in its journal alone."""
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for label in range(3):
        append(manager, label)
    yield manager
    manager.close()


def append(manager: LogManager, label: int) -> None:
    """Two records more in partitions 3 and 4, durable in the journal."""
    ends = [(partition, manager.end_offset(partition)) for partition in map(Partition, (3, 4))]
    manager.append([Entry(partition, end, batch(label, end, 2)) for partition, end in ends], sync=True)


def test_what_only_the_journal_has_is_read(manager: LogManager) -> None:
    found = rows(plan([str(manager.data_dir)]))
    assert offsets(found) == 2 * list(range(6))
    assert [row["committed_offset"] for row in found] == 2 * [0, 0, 1, 1, 2, 2]
    journal = manager.data_dir / "journal" / f"{1:020d}.journal"
    assert {row["file"] for row in found} == {str(journal)}
    data = journal.read_bytes()
    assert all(
        data[row["position"] :].startswith(batch(row["committed_offset"], row["base_offset"], 2))
        for row in found
    )


def test_what_both_have_is_read_once(manager: LogManager) -> None:
    manager.write_behind(1 << 20)
    append(manager, 3)
    found = rows(plan([str(manager.data_dir)]))
    assert offsets(found) == 2 * list(range(8))
    assert [row["file"].endswith(".journal") for row in found] == 2 * [*[False] * 6, True, True]


@pytest.mark.parametrize("again", [False, True])
def test_a_journal_that_is_done_with_before_it_is_read(manager: LogManager, again: bool) -> None:
    tasks = plan([str(manager.data_dir)])
    manager.checkpoint_journal()
    if again:
        # Other batches in the same space.
        for label in range(50, 60):
            append(manager, label)
    found = rows(tasks)
    assert offsets(found) == 2 * list(range(6))
    assert not any(row["file"].endswith(".journal") for row in found)


def test_a_journals_torn_end_is_no_damage(manager: LogManager) -> None:
    journal = manager.data_dir / "journal" / f"{1:020d}.journal"
    data = journal.read_bytes()
    with journal.open("r+b") as file:
        file.seek(len(data.rstrip(b"\0")) - 20)
        file.write(bytes(20))
    found = rows(plan([str(manager.data_dir)]))
    assert offsets(found) == 2 * list(range(4))
    assert {row["damage"] for row in found} == {None}
    journal.write_bytes(data)


def test_a_damaged_journal_is_told_of(manager: LogManager) -> None:
    journal = manager.data_dir / "journal" / f"{1:020d}.journal"
    data = bytearray(journal.read_bytes())
    data[4096 + 100] ^= 1
    journal.write_bytes(data)
    (row,) = rows(plan([str(manager.data_dir)]))
    assert row["file"] == str(journal)
    assert row["damage"] == "a frame is damaged, and flush 2 follows it"
    data[4096 + 100] ^= 1
    journal.write_bytes(data)


@pytest.mark.parametrize("range_bytes", [1, 1_000, 1 << 20])
def test_what_ends_before_the_log_starts_is_not_read(tmp_path: Path, range_bytes: int) -> None:
    made = batches(20)
    parts = [b"".join(made[:8]), b"".join(made[8:13]), b"".join(made[13:])]
    bases = [0, 15, 25]
    log_dir = write(tmp_path, *parts, first=bases)
    everything = rows(plan([str(log_dir)]))
    assert offsets(everything) == list(range(39))
    for start in range(41):
        checkpoint = log_dir / "log-start-offset-checkpoint"
        write_offsets(RealFileSystem(), checkpoint, {("__consumer_offsets", Partition(3)): Offset(start)})
        found = rows(plan([str(log_dir)], range_bytes=range_bytes, task_bytes=1))
        ends = {row["base_offset"]: row["offset"] for row in everything}
        assert found == [row for row in everything if ends[row["base_offset"]] >= start]


def test_a_torn_end_is_shown_wherever_the_log_starts(tmp_path: Path) -> None:
    made = batches(6)
    log_dir = write(tmp_path, b"".join(made) + b"torn")
    for start in (0, 5, 11, 12):
        checkpoint = log_dir / "log-start-offset-checkpoint"
        write_offsets(RealFileSystem(), checkpoint, {("__consumer_offsets", Partition(3)): Offset(start)})
        assert [row["tail"] for row in rows(plan([str(log_dir)]))].count(True) == 1


@pytest.mark.parametrize("chunk_bytes", [1, 200, 1 << 20])
def test_damage_is_shown_unless_it_ends_before_the_log_starts(chunk_bytes: int) -> None:
    """Batches of three records; bytes of the fourth one, offsets 9 to 11, are damaged, or those of the last one."""
    made = [batch(number, 3 * number, 3) for number in range(8)]
    for number in (3, 7):
        damaged = bytearray(b"".join(made))
        damaged[sum(map(len, made[:number])) + 70] ^= 1

        def chunks(data: bytes = bytes(damaged)) -> Iterator[tuple[str, Chunk]]:
            def read(position: int, size: int) -> bytes:
                return data[position : position + size]

            return (
                ("file", chunk)
                for chunk in iter_segment_chunks(
                    read, 0, len(data), is_newest_segment=False, chunk_bytes=chunk_bytes
                )
            )

        for start in range(25):
            shown = sum(len(chunk.damages) for _, chunk in skip_before_log_start(chunks(), 0, start))
            assert shown == (1 if number == 7 or start < 12 else 0), start
