# SPDX-License-Identifier: Apache-2.0
"""Unloads groups of lost partitions, now Dead, some in each turn of the loop; waiting requests get NOT_COORDINATOR."""

from collections import deque
from collections.abc import Callable
from typing import Final

from coordinator.groups.outcome import Reply
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.runtime.clock import Clock
from coordinator.runtime.timers import DeadlineScheduler
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import DURABLE, DurabilityTicket
from protocol.errors import ErrorCode

log = get_logger("groups")

UNLOADED_AT_ONCE: Final = 2_000
"""The number of groups of lost partitions that one turn of the event loop unloads: some milliseconds."""
TURN_NS: Final = 10_000_000
"""The time after which the loop has turned for sure, or was blocked by other work, in nanoseconds."""


class PartitionUnloader:
    """Unloads the groups of lost partitions; until then the groups do not change, as their shard is lost."""

    def __init__(
        self, timers: DeadlineScheduler, clock: Clock, deliver: Callable[[Reply, DurabilityTicket], None]
    ) -> None:
        """`deliver` sends replies to requests that wait in a group."""
        self._timers = timers
        self._clock = clock
        self._deliver = deliver
        self.at_once = UNLOADED_AT_ONCE
        self._shards: deque[Shard] = deque()
        self._is_asked = False  # True if `_go_on` will be called
        self._left = 0  # the groups that may still go in this turn
        self._began_ns = -TURN_NS

    def add(self, shard: Shard) -> None:
        """Add a lost shard, whose groups are to be unloaded."""
        self._shards.append(shard)

    def begin(self) -> None:
        """Unload as many groups as may still go in this turn, and schedule the others."""
        if self._shards and not self._is_asked:
            now_ns = self._clock.nanos()
            if now_ns - self._began_ns > TURN_NS:
                self._left, self._began_ns = self.at_once, now_ns
            self._unload_some()

    @property
    def is_under_way(self) -> bool:
        """True if groups of lost partitions are still in memory."""
        return bool(self._shards)

    def _go_on(self, _: None) -> None:
        self._is_asked = False
        self._left, self._began_ns = self.at_once, self._clock.nanos()
        self._unload_some()

    def _unload_some(self) -> None:
        """Unload as many groups of lost partitions as may go in this turn, and the others in the next ones."""
        while self._shards:
            shard = self._shards[0]
            while shard.groups:
                if self._left <= 0:
                    self._is_asked = True
                    self._timers.call_at(self._clock.mono_ms(), self._go_on)
                    return
                self._left -= 1
                self._unload(shard.groups.popitem()[1])
            shard.forget_hidden()
            self._shards.popleft()
            log.debug("unloaded partition", partition=shard.partition)

    def _unload(self, kept: GroupEntry) -> None:
        kept.offsets.subtract_from_totals()
        for reply in kept.group.unload_and_fail_requests(ErrorCode.NOT_COORDINATOR):
            self._deliver(reply, DURABLE)
