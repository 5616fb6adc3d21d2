# SPDX-License-Identifier: Apache-2.0
"""What a repair leaves in place of lost records is nothing that compaction or the indexes stumble over."""

import random
from datetime import UTC, datetime

import pytest

from protocol.newtypes import Partition
from storage.recovery.full_check import check_partition
from storage.recovery.repair import carry_out, plan_repair
from tests.storage.cleaning import replay
from tests.storage.test_cleaner import ROOT, Bench

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(6))
def test_a_mended_log_is_cleaned_as_any(seed: int) -> None:
    rng = random.Random(seed)
    bench = Bench()
    bench.history.random(rng, 150, transactions=seed % 2 == 1)
    bench.roll()
    if seed % 3 == 0:
        bench.clean()
    bench.manager.close()
    batches = [
        (segment.path, start)
        for segment in check_partition(bench.fs, ROOT, Partition(0)).segments
        for start, _ in [piece for piece in segment.pieces if isinstance(piece, tuple)]
    ]
    path, start = rng.choice(batches)
    file = bench.fs.open(path)
    file.pwrite([b"\xff\xfe\xfd"], start + 61)
    file.close()
    carry_out(bench.fs, ROOT, plan_repair(bench.fs, ROOT, Partition(0)), NOW)
    bench.reopen()
    for _ in range(3):
        before = replay(bench.batches())
        bench.clean()
        assert replay(bench.batches()) == before
        bench.history.random(rng, 40, transactions=seed % 2 == 1)
        bench.roll()
    bench.manager.close()
    after = check_partition(bench.fs, ROOT, Partition(0))
    assert (after.damages, after.unsettled) == ([], [])
