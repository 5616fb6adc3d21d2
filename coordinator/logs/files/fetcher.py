# SPDX-License-Identifier: Apache-2.0
"""Reads segments for clients, in the io thread.

A read returns data that has reached the segments. Durable data may still wait for write-behind, half a second at most;
a read of the newest data first moves that of its partitions into the segments.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from coordinator.runtime.io_thread import BlockingCallQueue
from coordinator.telemetry.logs import get_logger
from protocol.errors import ErrorCode
from protocol.newtypes import Offset, Partition
from storage.errors import NotOwned, StorageError, get_error_fields
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

ERRORS: Final = {
    EmptyReadReason.OUT_OF_RANGE: ErrorCode.OFFSET_OUT_OF_RANGE,
    EmptyReadReason.NEGATIVE_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,  # as in Kafka, where it is an exception
}


class ReadableFiles(Protocol):
    """The part of a LogManager that reads need."""

    def end_offset(self, partition: Partition) -> Offset:
        """Return the log end offset. Raises StorageError."""

    def run_read_on_log(
        self, partition: Partition, read: Callable[[PartitionLog], T], *, write_behind_first: bool
    ) -> T:
        """Return the result of `read` for a partition's log. Raises StorageError."""


class FileLogFetcher:
    """The LogFetcher over files."""

    def __init__(self, files: ReadableFiles, io: BlockingCallQueue) -> None:
        self._files = files
        self._io = io
        self._reader = LogReader()  # used in the io thread only

    def end_offset(self, partition: Partition) -> Offset | None:
        """Return the log end offset; None for a partition that is failed, or of another node."""
        try:
            return self._files.end_offset(partition)
        except StorageError:
            return None

    def fetch(
        self,
        wanted: Sequence[FetchQuery],
        left_bytes: int,
        done: Callable[[list[ReadResult | ErrorCode] | BaseException], None],
        *,
        at_least_one: bool,
        with_newest: bool,
    ) -> None:
        """Read partitions until a slice is full; call `done` with their results."""
        self._io.submit_with_callback(
            partial(self._read_some, wanted[:PARTITIONS_PER_SLICE], left_bytes, at_least_one, with_newest),
            done,
        )

    def _read_some(
        self, wanted: Sequence[FetchQuery], left_bytes: int, at_least_one: bool, with_newest: bool
    ) -> list[ReadResult | ErrorCode]:
        found: list[ReadResult | ErrorCode] = []
        size = 0
        for each in wanted:
            read = partial(
                self._reader.fetch,
                wanted=each,
                left_bytes=left_bytes,
                at_least_one=at_least_one and not size,
            )
            one = self._read_log(each.partition, read, with_newest=with_newest)
            if one is None:
                break  # the rest of its transactions comes in the next slice
            found.append(one)
            read_bytes = len(one.records) if isinstance(one, ReadResult) else 0
            left_bytes = max(left_bytes - read_bytes, 0)
            size += read_bytes
            if size >= READ_BYTES_MAX:
                break
        return found

    def find_offsets(
        self,
        sought: Sequence[OffsetQuery],
        done: Callable[[list[TimestampAndOffset | ErrorCode] | BaseException], None],
    ) -> None:
        """Find the first of the sought offsets, in all durable data; call `done` with their results."""
        self._io.submit_with_callback(partial(self._find_some, sought[:PARTITIONS_PER_SLICE]), done)

    def _find_some(self, sought: Sequence[OffsetQuery]) -> list[TimestampAndOffset | ErrorCode]:
        found: list[TimestampAndOffset | ErrorCode] = []
        for each in sought:
            one = self._read_log(
                each.partition,
                partial(self._reader.resolve_list_offsets_query, sought=each),
                with_newest=True,
            )
            if one is None:
                break
            found.append(one)
        return found

    def _read_log(
        self,
        partition: Partition,
        read: Callable[[PartitionLog], T | EmptyReadReason],
        *,
        with_newest: bool,
    ) -> T | ErrorCode | None:
        """Return the result of `read` for a partition's log, or its error; None if `read` needs another call."""
        try:
            one = self._files.run_read_on_log(partition, read, write_behind_first=with_newest)
        except NotOwned:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        except StorageError as error:
            log.warning("a client cannot read a partition", partition=partition, **get_error_fields(error))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not isinstance(one, EmptyReadReason):
            return one
        return None if one is EmptyReadReason.NOT_YET else ERRORS[one]
