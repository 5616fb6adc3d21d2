# SPDX-License-Identifier: Apache-2.0
"""An append that is on its way while a log is repaired."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from coordinator.partitions.committer import Committer, FlushMode
from coordinator.partitions.file_log import FileLog
from coordinator.partitions.group_log import LogError, LogWriter, ended
from coordinator.telemetry.stats import Stats
from protocol.names import Partition
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.catalogue.disk import ManualThread
from tests.groups.harness import FakeClock
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.support.files_in_memory import ROOT


class HeldThread(ManualThread):
    """A ManualThread whose calls can be awaited."""

    async def run(self, call: Callable[[], Any]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.submit(call, done.set_result)
        result = await done
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Nothing runs by itself."""


def record(group: str) -> OffsetCommitRecord:
    return OffsetCommitRecord(group, "topic", 0, OffsetAndMetadata(1, -1, "", 0))


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_append_on_its_way_when_a_repair_ends_is_not_taken_for_lost() -> None:
    fs = FaultyFileSystem(ROOT)
    files = LogManager.open(ROOT, LogSettings(), fs)
    flushes, io = HeldThread(), HeldThread()
    clock, stats = FakeClock(), Stats()
    committer = Committer(
        asyncio.get_running_loop(),
        files,
        flushes,
        clock,
        stats,
        FlushMode.ALWAYS,
        batch_bytes_max=1_024,
        offset_value_version=3,
        compression=0,
    )
    log = FileLog(files, committer, io, clock, stats, 1 << 20)
    lost: list[int] = []

    def on_failed(writers: Sequence[LogWriter], _error: LogError) -> None:
        lost.extend(writer.partition for writer in writers)

    log.on_failed = on_failed
    failing, other = log.new_writer(Partition(0), 0), log.new_writer(Partition(1), 0)

    fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    refused = failing.append([record("a")])
    await turn()
    flushes.run_all()
    await turn()
    assert refused.error
    assert lost == [0]

    # The append begins before the repair has ended, and reaches the log after it.
    taken = other.append([record("b")])
    await turn()
    io.run_all()
    await turn()
    flushes.run_all()
    await ended(taken)
    assert taken.is_durable
    assert lost == [0]
    assert files.end_offset(Partition(1)) == 1
