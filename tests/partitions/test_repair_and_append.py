# SPDX-License-Identifier: Apache-2.0
"""An append that is on its way while a log is repaired."""

import asyncio
import errno
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from coordinator.logs.files.committer import Committer, FlushMode
from coordinator.logs.files.file_log import FileLog
from coordinator.logs.group_log import LogError, LogUnavailable, LogWriter, wait_for_ticket_end
from coordinator.telemetry.stats import Stats
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.catalogue.disk import ManualThread
from tests.groups.harness import FakeClock
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.support.files_in_memory import ROOT


class HeldThread(ManualThread):
    """A ManualThread whose calls can be awaited."""

    async def run_blocking(self, call: Callable[[], Any]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.submit_with_callback(call, done.set_result)
        result = await done
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Nothing runs by itself."""


def record(group: str) -> OffsetCommitRecord:
    return OffsetCommitRecord(GroupId(group), "topic", 0, OffsetAndMetadata(Offset(1), -1, "", 0))


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Node:
    """A FileLog whose threads run when the test says so."""

    def __init__(self, mode: FlushMode = FlushMode.ALWAYS) -> None:
        self.fs = FaultyFileSystem(ROOT)
        self.files = LogManager.open(ROOT, LogSettings(), self.fs)
        self.flushes, self.io = HeldThread(), HeldThread()
        clock, stats = FakeClock(), Stats()
        committer = Committer(
            asyncio.get_running_loop(),
            self.files,
            self.flushes,
            clock,
            stats,
            mode,
            batch_bytes_max=1_024,
            offset_value_version=3,
            compression=0,
        )
        self.log = FileLog(self.files, committer, self.io, clock, stats, 1 << 20)
        self.log.retry_s = 0
        self.log.on_failed = self._failed
        self.lost: list[int] = []

    def _failed(self, writers: Sequence[LogWriter], _error: LogError) -> None:
        self.lost.extend(writer.partition for writer in writers)

    async def repaired(self) -> None:
        """Let the io thread do what it is given until the log takes appends again."""
        available = asyncio.ensure_future(self.log.repair_log_or_wait(Partition(0)))
        for _ in range(10):
            await turn()
            self.io.run_all()
        await turn()
        assert available.done()
        await available


async def test_an_append_on_its_way_when_a_repair_ends_is_not_taken_for_lost() -> None:
    node = Node()
    files, flushes = node.files, node.flushes
    failing, other = (
        node.log.new_writer(Partition(0), LeaderEpoch(0), Offset(0)),
        node.log.new_writer(Partition(1), LeaderEpoch(0), Offset(0)),
    )

    node.fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    refused = failing.append([record("a")])
    await turn()
    flushes.run_all()
    await turn()
    assert refused.error
    assert node.lost == [0]

    # The append begins before the repair has ended, and reaches the log after it.
    taken = other.append([record("b")])
    await turn()
    node.io.run_all()
    await turn()
    flushes.run_all()
    await wait_for_ticket_end(taken)
    assert taken.is_durable
    assert node.lost == [0]
    assert files.end_offset(Partition(1)) == 1


@pytest.mark.parametrize("error", [OSError(errno.EIO, "close failed"), RuntimeError("a bug")])
async def test_a_repair_is_tried_again_whatever_ended_the_last_try(
    error: Exception,
) -> None:
    node = Node()
    node.fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    refused = node.log.new_writer(Partition(0), LeaderEpoch(0), Offset(0)).append([record("a")])
    await turn()
    node.flushes.run_all()
    assert refused.error

    node.fs.close_errors.append(error)
    await node.repaired()
    assert not node.fs.close_errors
    taken = node.log.new_writer(Partition(0), LeaderEpoch(1), Offset(0)).append([record("b")])
    await turn()
    node.flushes.run_all()
    assert taken.is_durable


async def test_what_was_claimed_before_a_repair_gets_no_writer_though_the_end_of_the_repair_is_not_known() -> (
    None
):
    node = Node()
    claiming = asyncio.ensure_future(node.log.claim(Partition(0), LeaderEpoch(1)))
    await turn()
    claim = claiming.result()
    node.fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    node.log.new_writer(Partition(1), LeaderEpoch(0), Offset(0)).append([record("a")])
    await turn()
    node.flushes.run_all()
    await turn()

    node.io.run_all()  # in the io thread the repair has ended; the loop's next turn will say so
    assert node.files.append_failure is None
    assert node.log.repairs == 0
    with pytest.raises(LogUnavailable, match="is being repaired"):
        claim.open_writer()
    with pytest.raises(LogUnavailable, match="is being repaired"):
        await node.log.claim(Partition(0), LeaderEpoch(2))
    await turn()
    with pytest.raises(LogUnavailable, match="was repaired"):
        claim.open_writer()


async def test_a_claim_of_a_partition_that_ends_elsewhere_by_now_gets_no_writer() -> None:
    node = Node(FlushMode.OS)
    claiming = asyncio.ensure_future(node.log.claim(Partition(0), LeaderEpoch(1)))
    await turn()
    claim = claiming.result()
    ticket = claim.open_writer().append([record("a")])
    await turn()
    assert ticket.is_durable
    with pytest.raises(LogUnavailable, match="does not end"):
        claim.open_writer()


async def test_what_a_writer_gathers_that_a_repair_has_ended_takes_no_other_partition_with_it() -> None:
    node = Node(FlushMode.OS)
    behind, other = (
        node.log.new_writer(Partition(0), LeaderEpoch(0), Offset(0)),
        node.log.new_writer(Partition(1), LeaderEpoch(0), Offset(0)),
    )
    taken = behind.append([record("a")])
    await turn()
    assert taken.is_durable
    node.fs.fail(Fault.IO_ERROR, only="pwrite")
    refused = node.log.new_writer(Partition(2), LeaderEpoch(0), Offset(0)).append([record("b")])
    await turn()
    assert refused.error
    assert node.lost == [2]

    # Without a sync a repair may find less than was accepted.
    node.io.run_all()
    node.files._partitions._ends[Partition(0)] = Offset(0)
    gathered, beside = behind.append([record("c")]), other.append([record("d")])
    await turn()
    assert gathered.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert beside.is_durable
    assert node.lost == [2, 0]
    assert node.log.committer.is_idle
