# SPDX-License-Identifier: Apache-2.0
"""Filling a log, and compacting it under commits."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bench import cli
from bench.compaction import Phase, log_bytes, make_log, table
from bench.watched import Turn, WatchedNode
from storage.format.batch import iter_batches


def test_the_log_is_whole_and_about_as_large_as_asked_for(tmp_path: Path) -> None:
    node = WatchedNode("groupkeeper", tmp_path)
    records = make_log(node.data, 200_000, groups=10)
    assert 200_000 <= log_bytes(node) < 300_000
    segments = sorted(node.data.glob("__consumer_offsets-0/*.log"))
    assert len(segments) > 1, "what is written to is not compacted"
    offset = 0
    for segment in segments:
        assert int(segment.stem) == offset
        for batch in iter_batches(segment.read_bytes(), check=True):
            assert batch.base_offset == offset
            offset += batch.count
    assert offset == records


@pytest.mark.slow
def test_a_log_is_compacted_under_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(
        ["compaction", "--bytes", "1M", "--groups", "10", "--seconds", "0.2", "--data", str(tmp_path)]
    )
    told = capsys.readouterr().out
    assert status == 0, told
    rows = {line[:16].strip(): line[16:].split() for line in told.splitlines()}
    assert rows["commits"][0] > "0"
    for phase in ("loading", "idle", "commits", "and compaction"):
        assert int(rows[phase][1].replace(",", "")) > 0, told
    freed = re.search(r"compacted 1 times in .* s: ([0-9,]+) bytes freed", told)
    assert freed is not None, told
    assert int(freed[1].replace(",", "")) > 300_000
    assert list(tmp_path.iterdir()) == []


def test_each_phase_shows_its_own_turns() -> None:
    turns = [Turn(1.0, 0.001, 0.002), Turn(2.0, 0.003, 0.004), Turn(3.0, 0.005, 0.006)]
    phases = [
        Phase("one", 0.5, 1.5, 0, 0.0, Counter(), 0.007),
        Phase("two", 1.5, 3.5, 500, 2.0, Counter(), 0.008),
    ]
    _, one, two = table(phases, turns)
    assert one.split() == ["one", "0", "1", *["1.0"] * 3, *["2.0"] * 3, "7"]
    assert two.split() == ["two", "250", "2", "3.0", "5.0", "5.0", "4.0", "6.0", "6.0", "8"]


def test_a_size_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["compaction", "--bytes", "1X"])
    assert "not a size: '1X'" in capsys.readouterr().err
