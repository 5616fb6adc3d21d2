# SPDX-License-Identifier: Apache-2.0
"""Reads the partitions' logs for clients, without holding up the event loop.

What may wait for the disk is done in the io thread, in slices of about a megabyte, between which the others have their
turn there. What was read and not yet answered counts as unsent, so that many large reads cannot take the memory: once
the budget is used up, a read ends with what it has.

A read shows what has reached the segments. That is less than what is durable by what waits for write-behind, half a
second at most; a `fresh` one brings this into the segments first, of the partitions that it reads.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from coordinator.partitions.fetch_waiters import FetchWaiters
from coordinator.runtime.io_thread import Submitter
from coordinator.runtime.timers import Delays
from coordinator.telemetry.logs import get_logger
from protocol.errors import ErrorCode
from protocol.names import Partition
from storage.errors import NotOwned, StorageError, log_fields
from storage.log_manager import LogManager
from storage.partition.log import PartitionLog
from storage.partition.reader import (
    READ_BYTES_MAX,
    LogReader,
    OffsetQuery,
    ReadError,
    ReadResult,
    TimestampAndOffset,
    WantedBatches,
)

log = get_logger("reads")

T = TypeVar("T")

PARTITIONS_PER_SLICE: Final = 10
SLICE_BYTES_MAX: Final = 2 * READ_BYTES_MAX
"""A slice ends once it has `READ_BYTES_MAX`: what it had before its last partition was less, and that adds as much.

Only a single batch that is larger than `READ_BYTES_MAX` takes more.
"""

ERRORS: Final = {
    ReadError.OUT_OF_RANGE: ErrorCode.OFFSET_OUT_OF_RANGE,
    ReadError.NEGATIVE_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,  # as of Kafka, where it is an exception
}


class Budget(Protocol):
    """The part of the budget of unsent bytes that reads need."""

    over: bool

    def add(self, count: int) -> None:
        """So many bytes more are owed."""

    def remove(self, count: int) -> None:
        """So many bytes were taken, or given up."""


class LogReading:
    """A fetch on its way through its partitions.

    `found` has an answer for each of `wanted`, in their order, once `done` is called. What was read is in the budget
    until `release`.
    """

    def __init__(
        self,
        reads: "LogReads",
        wanted: Sequence[WantedBatches],
        max_bytes: int,
        done: Callable[[], None],
        *,
        fresh: bool,
    ) -> None:
        self.found: list[ReadResult | ErrorCode] = []
        self.is_cut = False
        """Whether there is more that was not read for want of memory."""
        self._reads = reads
        self._wanted = wanted
        self._left = max_bytes
        self._at_least_one = True
        self._done = done
        self._fresh = fresh
        self._is_released = False
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What was read so far."""
        return self._held_bytes

    def go_on(self) -> None:
        """Submit the next slice, with room for it in the budget, or end."""
        if len(self.found) == len(self._wanted):
            self._done()
            return
        if self._held_bytes and self._reads.budget.over:
            self._left = 0  # of the rest only the ends are answered
            self.is_cut = True
        self._reads.budget.add(SLICE_BYTES_MAX)
        self._reads.io.submit(self._read_some, self._took)

    def _read_some(self) -> list[ReadResult | ErrorCode]:
        """In the io thread: read partitions until a slice is full."""
        found: list[ReadResult | ErrorCode] = []
        size = 0
        begin = len(self.found)
        for wanted in self._wanted[begin : begin + PARTITIONS_PER_SLICE]:
            one = self._reads.fetch_one(
                wanted, self._left, at_least_one=self._at_least_one, fresh=self._fresh
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
        budget.remove(SLICE_BYTES_MAX)
        if self._is_released:
            return
        if isinstance(result, BaseException):
            log.error("a read for a client failed", exc_info=result)
            result = [ErrorCode.UNKNOWN_SERVER_ERROR] * (len(self._wanted) - len(self.found))
        size = sum(len(one.records) for one in result if isinstance(one, ReadResult))
        budget.add(size)
        self._held_bytes += size
        self.found += result
        self.go_on()

    def release(self) -> None:
        """The bytes are counted elsewhere now, or dropped; a read under way ends without a word."""
        if not self._is_released:
            self._is_released = True
            self._reads.budget.remove(self._held_bytes)
            self._held_bytes = 0


class LogReads:
    """What clients may read of this node's logs."""

    def __init__(self, log_manager: LogManager, io: Submitter, timers: Delays, budget: Budget) -> None:
        self.io = io
        self.budget = budget
        self.tail = FetchWaiters(log_manager.end_offset, timers)
        self._log = log_manager
        self._reader = LogReader()  # of the io thread

    def fetch(
        self, wanted: Sequence[WantedBatches], max_bytes: int, done: Callable[[], None], *, fresh: bool
    ) -> LogReading:
        """Read partitions in this order, about `max_bytes` together, and call `done`.

        The first batch comes however long it is; others only as far as they fit. To begin with call `go_on`.
        """
        return LogReading(self, wanted, max_bytes, done, fresh=fresh)

    def fetch_one(
        self, wanted: WantedBatches, left: int, *, at_least_one: bool, fresh: bool
    ) -> ReadResult | ErrorCode | None:
        """Blocks: read one partition, at most `left` bytes; None where it has to be asked for again."""

        def read(of: PartitionLog) -> ReadResult | ReadError:
            return self._reader.fetch(of, wanted, left, at_least_one=at_least_one)

        return self._look(wanted.partition, read, fresh=fresh)

    def locate(
        self, sought: Sequence[OffsetQuery], done: Callable[[list[TimestampAndOffset | ErrorCode]], None]
    ) -> None:
        """Find these places, with all that is durable in sight, and call `done` with them, or why there are none."""
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
                self.io.submit(partial(self._locate_some, some), take)
            else:
                done(found)

        go_on()

    def _locate_some(self, sought: Sequence[OffsetQuery]) -> list[TimestampAndOffset | ErrorCode]:
        found: list[TimestampAndOffset | ErrorCode] = []
        for each in sought:
            one = self._look(each.partition, partial(self._reader.locate, sought=each), fresh=True)
            if one is None:
                break
            found.append(one)
        return found

    def _look(
        self, partition: Partition, read: Callable[[PartitionLog], T | ReadError], *, fresh: bool
    ) -> T | ErrorCode | None:
        try:
            one = self._log.look(partition, read, fresh=fresh)
        except NotOwned:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        except StorageError as error:
            log.warning("a client cannot read a partition", partition=partition, **log_fields(error))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not isinstance(one, ReadError):
            return one
        return None if one is ReadError.NOT_YET else ERRORS[one]
