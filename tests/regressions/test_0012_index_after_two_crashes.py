# SPDX-License-Identifier: Apache-2.0
"""An index is whole after a recovery, whose recovery point the next one believes.

The recovery kept the entries that it added in memory, and noted that the segment was on disk; after another crash
nobody looked at that segment again, and its index stayed without them.
"""

import random

from protocol.newtypes import Partition
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.cleaning import build
from tests.storage.faulty import FaultyFileSystem
from tests.storage.test_index import check
from tests.storage.test_model import ROOT

SETTINGS = LogSettings(segment_bytes=900, index_interval_bytes=150, journal_step_bytes=8192)


def append(manager: LogManager, times: int) -> None:
    for _ in range(times):
        end = manager.end_offset(Partition(0))
        manager.append([Entry(Partition(0), end, build(end, [(b"key", None)]))], sync=True)


def test_an_index_is_whole_after_two_crashes() -> None:
    fs = FaultyFileSystem(ROOT, random.Random(0))
    manager = LogManager.open(ROOT, SETTINGS, fs)
    append(manager, 5)
    manager.close()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    append(manager, 9)
    for _ in range(2):
        fs.restart(power_loss=False)
        manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.close()
    check(fs, ROOT / "__consumer_offsets-0", SETTINGS.index_interval_bytes)
