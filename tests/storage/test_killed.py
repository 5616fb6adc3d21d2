# SPDX-License-Identifier: Apache-2.0
"""A process that is killed in the middle of its work, on a real disk."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.format.batch import iter_batches
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

pytestmark = pytest.mark.process

WORK = """
import itertools, sys
from pathlib import Path
from storage.disk.filesystem import RealFileSystem
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

sync = sys.argv[2] == "sync"
settings = LogSettings(segment_bytes=20_000, journal_step_bytes=65_536)
manager = LogManager.open(Path(sys.argv[1]), settings, RealFileSystem())
for label in itertools.count():
    ends = [(partition, manager.end_offset(partition)) for partition in range(3)]
    manager.append([Entry(p, end, batch(label, end, 1 + label % 3)) for p, end in ends], sync=sync)
    print(label, flush=True)
    if label % 7 == 0:
        manager.write_behind(4_000)
    if label % 50 == 49:
        manager.checkpoint_journal()
"""


@pytest.mark.parametrize("mode", ["sync", "os"])
@pytest.mark.parametrize("acknowledged", [1, 40, 130])
def test_all_that_was_acknowledged_is_there_once_and_in_order(
    tmp_path: Path, mode: str, acknowledged: int
) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WORK, str(tmp_path), mode]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for label in range(acknowledged):
            assert process.stdout.readline() == f"{label}\n"
        process.send_signal(signal.SIGKILL)
        # What came out before the signal arrived was acknowledged as well.
        acknowledged += len(process.stdout.read().splitlines())
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    assert manager.failed_partitions == {}
    for partition in range(3):
        found: list[bytes] = []
        offset = 0
        while offset < manager.end_offset(Partition(partition)):
            data, offset = manager.read(Partition(partition), Offset(offset), 5_000)
            found += (one.data for one in iter_batches(data, check=True))
        expected, offset = [], 0
        for label in range(len(found)):
            expected.append(batch(label, offset, 1 + label % 3))
            offset += 1 + label % 3
        assert found == expected
        # One more may have been written, whose acknowledgement did not come out any more.
        assert acknowledged <= len(found) <= acknowledged + 1
    manager.close()
