# SPDX-License-Identifier: Apache-2.0
"""Limits the number of requests with many names of groups or topics that are in memory in decoded form.

A decoded name takes more than ten times the memory of its bytes, and it stays until the cluster has answered. Requests
without a slot wait as bytes, which the budget counts.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from coordinator.gateway.routing_types import ClientSession
from coordinator.runtime.promise import Promise

MANY_PERMISSIONS: Final = 100
"""The number of needed permissions above which a request or response needs a slot."""
SLOTS: Final = 4
"""The number of slots in a process."""


@dataclass(slots=True, eq=False)
class DecodeSlots:
    """The slots of a process."""

    free: int = SLOTS
    waiting: "deque[DecodeSlot]" = field(default_factory=deque)
    """The requests that wait for a slot, the oldest first."""


class DecodeSlot:
    """The slot of one request, which acquires it only if it names many groups or topics."""

    __slots__ = ("_promise", "_session", "_slots", "is_held")

    def __init__(self, slots: DecodeSlots, session: ClientSession) -> None:
        self._slots = slots
        self._session = session
        self._promise: Promise[None] | None = None
        self.is_held = False

    async def acquire(self) -> None:
        """Wait until a slot is free.

        First waits until the client has taken all earlier responses. Otherwise a client that reads nothing would hold a
        slot for as long as it likes, because the broker's responses to permission queries are queued behind the
        responses that the client does not read.
        """
        await self._session.wait_until_answered()
        if self._slots.free:
            self._slots.free -= 1
            self.is_held = True
        else:
            self._promise = Promise(self._session.go_on_soon)
            self._slots.waiting.append(self)
            await self._promise

    def release(self) -> None:
        """Pass the slot on to the request that has waited longest, or leave the queue if this request still waits."""
        slots = self._slots
        if self.is_held:
            self.is_held = False
            if slots.waiting:
                slots.waiting.popleft()._receive()
            else:
                slots.free += 1
        elif self._promise is not None:
            slots.waiting.remove(self)

    def _receive(self) -> None:
        assert self._promise is not None, "a request in the queue waits for its promise"
        # Set before the request goes on, so that it passes the slot on if its connection ends meanwhile.
        self.is_held = True
        self._promise.resolve(None)
