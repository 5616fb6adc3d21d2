# SPDX-License-Identifier: Apache-2.0
"""A process that appends and compacts in a loop is killed; nothing that was acknowledged is lost or goes back."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.newtypes import Partition
from storage.disk.filesystem import RealFileSystem
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.cleaning import content, replay
from tests.storage.test_index import check

WORK = """
import itertools, os, sys, threading, time
from pathlib import Path
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.plan import CleanerSettings
from storage.disk.filesystem import RealFileSystem
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.cleaning import build

how = LogSettings(segment_bytes=4_000, journal_step_bytes=65_536)
manager = LogManager.open(Path(sys.argv[1]), how, RealFileSystem())
settings = CleanerSettings(min_cleanable_dirty_ratio=0, delete_retention_ms=0)
cleaner = LogCleaner(manager, settings, None, lambda: time.time_ns() // 1_000_000)

def clean():
    while True:
        if cleaner.clean_dirtiest() is not None:
            os.write(1, b"cleaned\\n")

threading.Thread(target=clean, daemon=True).start()
for number in itertools.count():
    end = manager.end_offset(0)
    pairs = [(b"key %d" % (number % 5), b"%d" % number), (b"gone", None if number % 2 else b"x")]
    manager.append([Entry(0, end, build(end, pairs))], sync=True)
    os.write(1, b"%d\\n" % number)
    if number % 20 == 0:
        manager.checkpoint_journal()
"""


@pytest.mark.slow
@pytest.mark.parametrize("cleanings", [1, 2, 3, 5, 8])
def test_a_process_that_appends_and_compacts_is_killed(tmp_path: Path, cleanings: int) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WORK, str(tmp_path)]
    newest = -1
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        cleaned = 0
        while cleaned < cleanings:
            line = process.stdout.readline()
            if line == "cleaned\n":
                cleaned += 1
            else:
                newest = int(line)
        # Somewhere within the next cleaning, which begins at once.
        for _ in range(7 * cleanings):
            line = process.stdout.readline()
            newest = newest if line == "cleaned\n" else int(line)
        process.send_signal(signal.SIGKILL)
        for line in process.stdout.read().splitlines():
            newest = newest if line == "cleaned" else int(line)
    manager = LogManager.open(tmp_path, LogSettings(segment_bytes=4_000), RealFileSystem())
    assert manager.failed_partitions == {}
    # One more may have been written, whose acknowledgement did not come out any more.
    end = manager.end_offset(Partition(0))
    assert end // 2 in (newest + 1, newest + 2)
    last = end // 2 - 1
    expected = {b"key %d" % (number % 5): b"%d" % number for number in range(last + 1)}
    if last % 2 == 0:
        expected[b"gone"] = b"x"
    assert replay(content(manager, 0)) == expected
    manager.close()
    names = [path.name for path in (tmp_path / "__consumer_offsets-0").iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    check(RealFileSystem(), tmp_path / "__consumer_offsets-0", 4096)
