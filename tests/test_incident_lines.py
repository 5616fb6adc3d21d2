# SPDX-License-Identifier: Apache-2.0
"""What goes on failing fills no log: a line when it begins, one each minute, and one when it is over."""

import errno
import weakref
from pathlib import Path

from coordinator.telemetry.incidents import OPEN_MAX, REMIND_MS, Incidents
from coordinator.telemetry.logs import get_logger
from storage.cleaner.partition_cleaning import CleaningJob, CleaningResult, write_cleaned_segments
from storage.disk.filesystem import RealFileSystem
from tests.partitions.disk import READS, SEGMENTS, SYNCS, WRITES
from tests.partitions.running import PARTITIONS, Running, eventually, node
from tests.support.log_lines import LogLines, captured

TRIES = 20


def test_a_reminder_comes_each_minute_with_how_long_and_how_often() -> None:
    now_ms = 0
    with captured() as lines:
        incidents = Incidents(get_logger("test"), lambda: now_ms)
        incidents.end_incident("a", "fine")
        for second in range(1, 131):
            now_ms = second * 1_000
            incidents.log_repeated_failure("a", "bad", reason="why")
            if second == 100:
                incidents.log_repeated_failure("b", "worse")
        incidents.end_incident("a", "fine again")
        incidents.end_incident("a", "fine again")
        incidents.log_repeated_failure("a", "bad", reason="anew")
    assert REMIND_MS == 60_000
    assert lines.lines == [
        ("error", "bad", {"reason": "why"}),
        ("error", "bad", {"reason": "why", "seconds": 60, "times": 61}),
        ("error", "worse", {}),
        ("error", "bad", {"reason": "why", "seconds": 120, "times": 121}),
        ("info", "fine again", {"seconds": 129, "times": 130}),
        ("error", "bad", {"reason": "anew"}),
    ]


def test_of_very_many_incidents_the_oldest_are_forgotten() -> None:
    with captured() as lines:
        incidents = Incidents(get_logger("test"), lambda: 0, "warning")
        for number in range(OPEN_MAX + 1):
            incidents.log_repeated_failure(number, "bad")
        for number in (OPEN_MAX, 0):
            incidents.log_repeated_failure(number, "bad", number=number)
    assert lines.lines[OPEN_MAX + 1 :] == [("warning", "bad", {"number": 0})]


def test_a_key_is_not_kept_because_clients_choose_names_of_any_length() -> None:
    class Name(str):
        __slots__ = ("__weakref__",)

    name = Name("x" * 32_767)
    kept = weakref.ref(name)
    with captured() as lines:
        incidents = Incidents(get_logger("test"), lambda: 0)
        incidents.log_repeated_failure(name, "bad")
        del name
        assert kept() is None
        incidents.log_repeated_failure("x" * 32_767, "bad")
    assert len(lines.lines) == 1


def errors(lines: LogLines) -> list[str]:
    return [event for level, event, _ in lines.lines if level == "error"]


async def until_tried(running: Running) -> None:
    """Wait until so many things have failed on the disk."""
    failures = running.disk.failures
    await eventually(lambda: running.disk.failures >= failures + TRIES, "the disk to fail often")


async def test_a_full_disk_has_one_line_however_many_partitions_and_tries(tmp_path: Path) -> None:
    with captured() as lines:
        async with node(tmp_path, journal_checkpoint_interval_ms=100) as running:
            client = await running.client()
            groups = [running.group_in(partition) for partition in range(PARTITIONS)]
            running.disk.fail(WRITES | SYNCS, code=errno.ENOSPC)
            for group in groups:
                assert await client.commit(group, 0, 1)
            await until_tried(running)
            jobs = running.app.scheduler.jobs["write_behind"]
            runs = jobs.runs
            await eventually(lambda: jobs.runs > runs + 1, "jobs to fail as well")
            running.disk.heal()
            await running.loaded()
    assert errors(lines) == ["a flush failed"]
    assert "the journal is writable again" in lines.events


async def test_segments_that_cannot_be_written_have_one_line(tmp_path: Path) -> None:
    with captured() as lines:
        async with node(tmp_path) as running:
            client = await running.client()
            running.disk.fail(WRITES, where=SEGMENTS, code=errno.ENOSPC)
            await client.commit("group", 0, 1)
            job = running.app.scheduler.jobs["write_behind"]
            await eventually(lambda: job.failures > 2, "the job to fail often")
            running.disk.heal()
            await eventually(lambda: not job.failing_since_ms, "the job to succeed")
    assert errors(lines) == ["writing to disk failed"]
    (over,) = lines.fields("writing to disk succeeds again")
    assert over["what"] == "segments"
    assert over["times"] > 2


async def test_a_compaction_that_goes_on_failing_has_one_line_and_one_when_it_succeeds(
    tmp_path: Path,
) -> None:
    full = True

    def compact(job: CleaningJob) -> CleaningResult:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_cleaned_segments(RealFileSystem(), job)

    with captured() as lines:
        async with node(
            tmp_path,
            compact=compact,
            offsets_topic_segment_bytes=1_024,
            journal_checkpoint_interval_ms=100,
            log_cleaner_backoff_ms=20,
            min_cleanable_dirty_ratio=0.0,
        ) as running:
            client = await running.client()
            for offset in range(50):
                await client.commit("group", 0, offset)
            stats = running.app.stats
            await eventually(lambda: stats.cleaning_failures > TRIES, "compactions to fail")
            full = False
            await eventually(lambda: stats.cleanings, "a compaction")
    assert errors(lines) == ["compaction failed"]
    assert lines.fields("compaction succeeds again")[0]["times"] > TRIES


async def test_a_partition_that_cannot_be_read_for_a_while_has_one_line(tmp_path: Path) -> None:
    async with node(tmp_path) as running:
        group = running.group_in(1)
        assert not await (await running.client()).commit(group, 0, 1)
    with captured() as lines:
        async with node(tmp_path, held_partition=1) as running:
            running.app.leadership.retry_s = 0.001
            running.disk.fail(READS, where=f"{SEGMENTS}1", code=errno.EIO)
            running.disk.let_go()
            loads = running.app.stats
            await eventually(lambda: loads.partition_load_failures > TRIES, "the load to fail often")
            running.disk.heal()
            await running.loaded()
    assert errors(lines) == ["cannot load partition"]
    (over,) = lines.fields("a partition can be loaded again")
    assert over["times"] > TRIES
