# SPDX-License-Identifier: Apache-2.0
"""The log that a node is given: the log port of its groups, and what only some logs offer.

A log that keeps itself in order needs no upkeep, and one that clients cannot read as a topic has no fetcher.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from coordinator.logs.group_log import GroupLog
from coordinator.runtime.periodic_jobs import End
from protocol.errors import ErrorCode
from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import Space
from storage.partition.reader import READ_BYTES_MAX, FetchQuery, OffsetQuery, ReadResult, TimestampAndOffset

FETCH_BYTES_MAX: Final = 2 * READ_BYTES_MAX
"""The most that one call of `LogFetcher.fetch` reads: under `READ_BYTES_MAX` before the last partition that it reads,
and as much from that partition.

Only a single batch that is larger than `READ_BYTES_MAX` takes more.
"""


class LogJob(NamedTuple):
    """Work that a log needs every `interval_ms`; `run` gets a function to call at its end, with True if it failed."""

    name: str
    interval_ms: int
    run: Callable[[End], None]


class PartitionLogSize(NamedTuple):
    """The size of a partition's log, in bytes, and the offset at which it ends."""

    log_bytes: int
    end_offset: int


class LogUpkeep(Protocol):
    """The work that keeps a log in order, and its state for operators."""

    @property
    def space(self) -> Space | None:
        """The space on the log's disk when it was last read; None if it never could be."""

    @property
    def journal_bytes(self) -> int:
        """The bytes that a start would replay before the log can be used."""

    @property
    def refusal_reason(self) -> str | None:
        """The reason why the log takes no appends, until it is repaired; None if it takes them."""

    def list_jobs(self) -> Sequence[LogJob]:
        """Return the jobs that a node runs from its start to its stop."""

    def find_log_size(self, partition: Partition) -> PartitionLogSize | None:
        """Return the size of a partition's log; None if it cannot be read."""

    async def stop_jobs(self) -> None:
        """Stop jobs that run for long, and wait until they have ended; called before the log is closed."""


class LogFetcher(Protocol):
    """Reads partitions for clients that consume the log as a topic."""

    def end_offset(self, partition: Partition) -> Offset | None:
        """Return the log end offset of a partition; None if this node cannot read it. Never waits."""

    def fetch(
        self,
        wanted: Sequence[FetchQuery],
        left_bytes: int,
        done: Callable[[list[ReadResult | ErrorCode] | BaseException], None],
        *,
        at_least_one: bool,
        with_newest: bool,
    ) -> None:
        """Read the first of `wanted`, at least one, at most `FETCH_BYTES_MAX`; call `done` with their results.

        Results are at most `left_bytes` long; with `at_least_one` the first batch is read however long it is. With
        `with_newest` all durable data is read, else that which the log can read at once. An empty list means that the
        first query needs another call. An exception is a bug.
        """

    def find_offsets(
        self,
        sought: Sequence[OffsetQuery],
        done: Callable[[list[TimestampAndOffset | ErrorCode] | BaseException], None],
    ) -> None:
        """Find the first of the sought offsets in all durable data, at least one; call `done` with their results.

        An empty list means that the first query needs another call. An exception is a bug.
        """


@dataclass(frozen=True, slots=True)
class NodeLog:
    """The log that a node is given, and the id of the cluster whose groups it holds."""

    groups: GroupLog
    upkeep: LogUpkeep | None
    fetcher: LogFetcher | None
    cluster_id: str
