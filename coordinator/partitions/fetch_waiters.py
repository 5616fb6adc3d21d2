# SPDX-License-Identifier: Apache-2.0
"""Wakes fetches that wait for more data at the end of a partition's log.

The log end offsets are checked every `LOOK_MS` while a fetch waits; appends send no notification. So commits pay
nothing for readers, and a reader that follows the log fetches ten times a second at most, however many commits come.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from coordinator.runtime.timers import Delays
from protocol.newtypes import Offset, Partition

LOOK_MS: Final = 100
"""The interval at which the log end offsets are checked, in milliseconds."""
WOKEN_AT_ONCE: Final = 50
"""The maximum number of fetches that one turn of the event loop wakes."""


class FetchWaiter:
    """A waiting fetch, and the log end offset that it last saw of each partition."""

    __slots__ = ("ends", "wake")

    def __init__(self, ends: Mapping[Partition, Offset], wake: Callable[[], None]) -> None:
        self.ends = ends
        self.wake = wake


class FetchWaiters:
    """The waiting fetches by partition; each is woken once."""

    def __init__(self, end_offset: Callable[[Partition], Offset | None], timers: Delays) -> None:
        """`end_offset` returns a partition's log end offset; None if this node cannot read it."""
        self._end_offset = end_offset
        self._timers = timers
        self._waiting: dict[Partition, dict[FetchWaiter, None]] = {}
        self._seen: dict[Partition, Offset | None] = {}  # the ends that all fetches of a partition have seen
        self._woken: dict[FetchWaiter, None] = {}  # a set that keeps their order
        self._is_looking = False

    def add_waiter(self, ends: Mapping[Partition, Offset], wake: Callable[[], None]) -> FetchWaiter:
        """Call `wake` once a partition's log end offset differs from `ends`, or this node no longer has it."""
        waiting = FetchWaiter(ends, wake)
        for partition, end in ends.items():
            others = self._waiting.setdefault(partition, {})
            if others and self._seen.get(partition) != end:
                self._seen.pop(partition, None)
            elif not others:
                self._seen[partition] = end
            others[waiting] = None
        if not self._is_looking:
            self._is_looking = True
            self._timers.call_after(LOOK_MS, self._look)
        return waiting

    def remove_waiter(self, waiting: FetchWaiter) -> None:
        """Remove a waiting fetch; harmless for one that was woken."""
        for partition in waiting.ends:
            others = self._waiting.get(partition)
            if others is not None:
                others.pop(waiting, None)
                if not others:
                    del self._waiting[partition]
                    self._seen.pop(partition, None)
        self._woken.pop(waiting, None)

    def _look(self, _argument: object) -> None:
        for partition, others in list(self._waiting.items()):
            end = self._end_offset(partition)
            if partition not in self._seen or end != self._seen[partition]:
                self._seen[partition] = end
                for waiting in [each for each in others if each.ends[partition] != end]:
                    self.remove_waiter(waiting)
                    self._woken[waiting] = None
        self._wake_some(None)
        self._is_looking = bool(self._waiting)
        if self._is_looking:
            self._timers.call_after(LOOK_MS, self._look)

    def _wake_some(self, _argument: object) -> None:
        for waiting in list(islice(self._woken, WOKEN_AT_ONCE)):
            if waiting in self._woken:  # else an earlier `wake` has cancelled it
                del self._woken[waiting]
                waiting.wake()
        if self._woken:
            self._timers.call_after(1, self._wake_some)
