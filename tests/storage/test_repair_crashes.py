# SPDX-License-Identifier: Apache-2.0
"""A repair on a disk that fails at any moment: the damaged bytes stay somewhere, and the next repair ends it."""

import contextlib
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import read_file
from storage.errors import StorageError
from storage.format.batch import iter_batches
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.full_check import check_partition
from storage.recovery.repair import carry_out, plan_repair
from storage.settings import LogSettings
from tests.storage.every_fault import EVERY_FAULT
from tests.storage.faulty import Crash, Fault, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
P = 0
DIRECTORY = ROOT / "__consumer_offsets-0"
FIRST, SECOND = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
DAMAGED = {1, 9}


def damaged_disk(seed: int) -> tuple[FaultyFileSystem, dict[Path, bytes]]:
    """A disk with twelve batches in several segments, two of them damaged in two segments; and those segments."""
    fs = FaultyFileSystem(ROOT, random.Random(seed))
    manager = LogManager.open(ROOT, LogSettings(segment_bytes=600), fs)
    for at in range(12):
        manager.append([Entry(Partition(P), Offset(at), batch(at, at))], sync=False)
    manager.close()
    for name in fs.listdir(DIRECTORY):
        if name.endswith(".log"):
            data = read_file(fs, DIRECTORY / name)
            for one in list(iter_batches(data)):
                if one.base_offset in DAMAGED:
                    file = fs.open(DIRECTORY / name)
                    file.pwrite([bytes([data[one.position + 70] ^ 1])], one.position + 70)
                    file.fsync()
                    file.close()
    checked = check_partition(fs, ROOT, Partition(P))
    assert [damage.offset for damage in checked.damages] == sorted(DAMAGED)
    return fs, {damage.path: read_file(fs, damage.path) for damage in checked.damages}


def is_kept(fs: FaultyFileSystem, path: Path, data: bytes) -> bool:
    """Whether a segment is still what it was, here or aside."""
    places = [DIRECTORY, *(DIRECTORY / name for name in fs.listdir(DIRECTORY) if name.startswith("damaged-"))]
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            if read_file(fs, place / path.name) == data:
                return True
    return False


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_any_one_operation_of_a_repair_may_fail(fault: Fault, power_loss: bool) -> None:
    fs, _ = damaged_disk(0)
    fs.operations = 0
    carry_out(fs, ROOT, plan_repair(fs, ROOT, Partition(P)), FIRST)
    count = fs.operations
    assert count > 20
    for operation in range(count):
        fs, damaged = damaged_disk(operation)
        plan = plan_repair(fs, ROOT, Partition(P))
        fs.fail(fault, operation)
        with contextlib.suppress(Crash, StorageError):
            carry_out(fs, ROOT, plan, FIRST)
        fs.restart(power_loss=power_loss)
        for path, data in damaged.items():
            assert is_kept(fs, path, data), f"{fs.log[-1:]}: {path.name} is lost"
        carry_out(fs, ROOT, plan_repair(fs, ROOT, Partition(P)), SECOND)
        fs.restart(power_loss=True)
        after = check_partition(fs, ROOT, Partition(P))
        assert (after.damages, after.unsettled) == ([], [])
        manager = LogManager.open(ROOT, LogSettings(), fs)
        assert (manager.failed_partitions, manager.cuts, manager.end_offset(Partition(P))) == ({}, (), 12)
        data, _ = manager.read(Partition(P), Offset(0), 1 << 20)
        found, offset = [], 0
        while offset < 12:
            data, offset = manager.read(Partition(P), Offset(offset), 1 << 20)
            found += [one.base_offset for one in iter_batches(data, check=True) if one.count]
        assert found == [at for at in range(12) if at not in DAMAGED]
        manager.close()
