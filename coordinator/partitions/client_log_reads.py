# SPDX-License-Identifier: Apache-2.0
"""Reads the partitions' logs for clients, without holding up the event loop.

Work that may wait for the disk is done in the io thread, in slices of about a megabyte, between which other work has
its turn. Bytes that were read and not yet sent count as unsent, so that many large reads cannot take the memory: once
the budget is used up, a read ends with the data it has.

A read returns data that has reached the segments. Durable data may still wait for write-behind, half a second at most;
with `write_behind_first` a read first moves this data of its partitions into the segments.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from coordinator.partitions.fetch_waiters import FetchWaiters
from coordinator.runtime.io_thread import BlockingCallQueue
from coordinator.runtime.timers import Delays
from coordinator.telemetry.logs import get_logger
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from storage.errors import NotOwned, StorageError, get_error_fields
from storage.log_manager import LogManager
from storage.partition.log import PartitionLog
from storage.partition.reader import (
    READ_BYTES_MAX,
    EmptyReadReason,
    FetchQuery,
    LogReader,
    OffsetQuery,
    ReadResult,
    TimestampAndOffset,
)

log = get_logger("reads")

T = TypeVar("T")

PARTITIONS_PER_SLICE: Final = 10
SLICE_BYTES_MAX: Final = 2 * READ_BYTES_MAX
"""The most that a slice holds: under `READ_BYTES_MAX` before its last partition, and as much from that partition.

Only a single batch that is larger than `READ_BYTES_MAX` takes more.
"""

ERRORS: Final = {
    EmptyReadReason.OUT_OF_RANGE: ErrorCode.OFFSET_OUT_OF_RANGE,
    EmptyReadReason.NEGATIVE_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,  # as in Kafka, where it is an exception
}


class UnsentBytesBudget(Protocol):
    """The part of the budget of unsent bytes that reads need."""

    over: bool

    def add_unsent_bytes(self, count: int) -> None:
        """Add `count` bytes that are unsent."""

    def remove_unsent_bytes(self, count: int) -> None:
        """Remove `count` bytes that were sent or dropped."""


class LogReadInProgress:
    """A fetch on its way through its partitions.

    `found` has a result for each of `wanted`, in their order, once `done` is called. The bytes that were read count in
    the budget until `stop_and_release_bytes`.
    """

    def __init__(
        self,
        reads: "LogReads",
        wanted: Sequence[FetchQuery],
        max_bytes: int,
        done: Callable[[], None],
        *,
        write_behind_first: bool,
    ) -> None:
        self.found: list[ReadResult | ErrorCode] = []
        self.is_cut = False
        """True if more data was left unread for want of memory."""
        self._reads = reads
        self._wanted = wanted
        self._left = max_bytes
        self._at_least_one = True
        self._done = done
        self._write_behind_first = write_behind_first
        self._is_released = False
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The bytes that were read and not yet released."""
        return self._held_bytes

    def go_on(self) -> None:
        """Reserve room in the budget for the next slice and submit the slice; after the last one call `done`."""
        if len(self.found) == len(self._wanted):
            self._done()
            return
        if self._held_bytes and self._reads.budget.over:
            self._left = 0  # for the rest only the end offsets are returned
            self.is_cut = True
        self._reads.budget.add_unsent_bytes(SLICE_BYTES_MAX)
        self._reads.io.submit_with_callback(self._read_some, self._took)

    def _read_some(self) -> list[ReadResult | ErrorCode]:
        """Read partitions until a slice is full; runs in the io thread."""
        found: list[ReadResult | ErrorCode] = []
        size = 0
        begin = len(self.found)
        for wanted in self._wanted[begin : begin + PARTITIONS_PER_SLICE]:
            one = self._reads.fetch_one(
                wanted,
                self._left,
                at_least_one=self._at_least_one,
                write_behind_first=self._write_behind_first,
            )
            if one is None:
                break  # the rest of its transactions comes in the next slice
            found.append(one)
            read = len(one.records) if isinstance(one, ReadResult) else 0
            self._left = max(self._left - read, 0)
            self._at_least_one = self._at_least_one and not read
            size += read
            if size >= READ_BYTES_MAX:
                break
        return found

    def _took(self, result: list[ReadResult | ErrorCode] | BaseException) -> None:
        budget = self._reads.budget
        budget.remove_unsent_bytes(SLICE_BYTES_MAX)
        if self._is_released:
            return
        if isinstance(result, BaseException):
            log.error("a read for a client failed", exc_info=result)
            result = [ErrorCode.UNKNOWN_SERVER_ERROR] * (len(self._wanted) - len(self.found))
        size = sum(len(one.records) for one in result if isinstance(one, ReadResult))
        budget.add_unsent_bytes(size)
        self._held_bytes += size
        self.found += result
        self.go_on()

    def stop_and_release_bytes(self) -> None:
        """Take the bytes out of the budget, as they are counted elsewhere or dropped; end a read under way silently."""
        if not self._is_released:
            self._is_released = True
            self._reads.budget.remove_unsent_bytes(self._held_bytes)
            self._held_bytes = 0


class LogReads:
    """The reads that clients make of this node's logs."""

    def __init__(
        self, log_manager: LogManager, io: BlockingCallQueue, timers: Delays, budget: UnsentBytesBudget
    ) -> None:
        self.io = io
        self.budget = budget
        self.tail = FetchWaiters(log_manager.end_offset, timers)
        self._log = log_manager
        self._reader = LogReader()  # used in the io thread only

    def prepare_fetch(
        self,
        wanted: Sequence[FetchQuery],
        max_bytes: int,
        done: Callable[[], None],
        *,
        write_behind_first: bool,
    ) -> LogReadInProgress:
        """Return a fetch that reads partitions in this order, about `max_bytes` in total, and then calls `done`.

        The first batch is read however long it is; others only as far as they fit. The caller begins with `go_on`.
        """
        return LogReadInProgress(self, wanted, max_bytes, done, write_behind_first=write_behind_first)

    def fetch_one(
        self, wanted: FetchQuery, left: int, *, at_least_one: bool, write_behind_first: bool
    ) -> ReadResult | ErrorCode | None:
        """Read one partition, at most `left` bytes; None if the read has to be repeated. Blocks."""

        def read(of: PartitionLog) -> ReadResult | EmptyReadReason:
            return self._reader.fetch(of, wanted, left, at_least_one=at_least_one)

        return self._look(wanted.partition, read, write_behind_first=write_behind_first)

    def find_offsets_with_callback(
        self, sought: Sequence[OffsetQuery], done: Callable[[list[TimestampAndOffset | ErrorCode]], None]
    ) -> None:
        """Find the sought offsets in all durable data, and call `done` with each offset, or with its error."""
        found: list[TimestampAndOffset | ErrorCode] = []

        def take(result: list[TimestampAndOffset | ErrorCode] | BaseException) -> None:
            if isinstance(result, BaseException):
                log.error("an offset cannot be found in a log", exc_info=result)
                result = [ErrorCode.UNKNOWN_SERVER_ERROR] * (len(sought) - len(found))
            found.extend(result)
            go_on()

        def go_on() -> None:
            some = sought[len(found) : len(found) + PARTITIONS_PER_SLICE]
            if some:
                self.io.submit_with_callback(partial(self._locate_some, some), take)
            else:
                done(found)

        go_on()

    def _locate_some(self, sought: Sequence[OffsetQuery]) -> list[TimestampAndOffset | ErrorCode]:
        found: list[TimestampAndOffset | ErrorCode] = []
        for each in sought:
            one = self._look(
                each.partition,
                partial(self._reader.resolve_list_offsets_query, sought=each),
                write_behind_first=True,
            )
            if one is None:
                break
            found.append(one)
        return found

    def _look(
        self,
        partition: Partition,
        read: Callable[[PartitionLog], T | EmptyReadReason],
        *,
        write_behind_first: bool,
    ) -> T | ErrorCode | None:
        try:
            one = self._log.run_read_on_log(partition, read, write_behind_first=write_behind_first)
        except NotOwned:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        except StorageError as error:
            log.warning("a client cannot read a partition", partition=partition, **get_error_fields(error))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not isinstance(one, EmptyReadReason):
            return one
        return None if one is EmptyReadReason.NOT_YET else ERRORS[one]
