# SPDX-License-Identifier: Apache-2.0
"""Reads the partitions' logs for clients, without holding up the event loop.

The log reads in slices of about a megabyte, between which other work has its turn. Bytes that were read and not yet
sent count as unsent, so that many large reads cannot take the memory: once the budget is used up, a read ends with the
data it has.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from coordinator.logs.node_log import FETCH_BYTES_MAX, LogFetcher
from coordinator.partitions.fetch_waiters import FetchWaiters
from coordinator.runtime.timers import Delays
from coordinator.telemetry.logs import get_logger
from protocol.errors import ErrorCode
from protocol.newtypes import Partition
from storage.partition.reader import FetchQuery, OffsetQuery, ReadResult, TimestampAndOffset

log = get_logger("reads")


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
        with_newest: bool,
    ) -> None:
        self.found: list[ReadResult | ErrorCode] = []
        self.is_cut = False
        """True if more data was left unread for want of memory."""
        self._reads = reads
        self._wanted = wanted
        self._left = max_bytes
        self._done = done
        self._with_newest = with_newest
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
        self._reads.budget.add_unsent_bytes(FETCH_BYTES_MAX)
        self._reads.fetcher.fetch(
            self._wanted[len(self.found) :],
            self._left,
            self._took,
            at_least_one=not self._held_bytes,
            with_newest=self._with_newest,
        )

    def _took(self, result: list[ReadResult | ErrorCode] | BaseException) -> None:
        budget = self._reads.budget
        budget.remove_unsent_bytes(FETCH_BYTES_MAX)
        if self._is_released:
            return
        if isinstance(result, BaseException):
            log.error("a read for a client failed", exc_info=result)
            result = [ErrorCode.UNKNOWN_SERVER_ERROR] * (len(self._wanted) - len(self.found))
        size = sum(len(one.records) for one in result if isinstance(one, ReadResult))
        budget.add_unsent_bytes(size)
        self._held_bytes += size
        if result:
            self._left = max(self._left - size, 0)
        self.found += result
        self.go_on()

    def stop_and_release_bytes(self) -> None:
        """Take the bytes out of the budget, as they are counted elsewhere or dropped; end a read under way silently."""
        if not self._is_released:
            self._is_released = True
            self._reads.budget.remove_unsent_bytes(self._held_bytes)
            self._held_bytes = 0


class LogReads:
    """The reads that clients make of this node's logs; without a fetcher the log refuses them."""

    def __init__(self, fetcher: LogFetcher | None, timers: Delays, budget: UnsentBytesBudget) -> None:
        self.fetcher = fetcher or _RefusingFetcher()
        self.budget = budget
        self.tail = FetchWaiters(self.fetcher.end_offset, timers)

    def prepare_fetch(
        self,
        wanted: Sequence[FetchQuery],
        max_bytes: int,
        done: Callable[[], None],
        *,
        with_newest: bool,
    ) -> LogReadInProgress:
        """Return a fetch that reads partitions in this order, about `max_bytes` in total, and then calls `done`.

        The first batch is read however long it is; others only as far as they fit. The caller begins with `go_on`.
        """
        return LogReadInProgress(self, wanted, max_bytes, done, with_newest=with_newest)

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
            if len(found) < len(sought):
                self.fetcher.find_offsets(sought[len(found) :], take)
            else:
                done(found)

        go_on()


class _RefusingFetcher:
    """The fetcher of a log that clients cannot read as a topic: a client that retries would wait for ever."""

    def end_offset(self, _partition: Partition) -> None:
        return None

    def fetch(
        self,
        wanted: Sequence[FetchQuery],
        _left_bytes: int,
        done: Callable[[list[ReadResult | ErrorCode] | BaseException], None],
        *,
        at_least_one: bool,
        with_newest: bool,
    ) -> None:
        done([ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(wanted))

    def find_offsets(
        self,
        sought: Sequence[OffsetQuery],
        done: Callable[[list[TimestampAndOffset | ErrorCode] | BaseException], None],
    ) -> None:
        done([ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(sought))
