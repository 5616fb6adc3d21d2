# SPDX-License-Identifier: Apache-2.0
"""An event loop that says when it has nothing to do, so that a test waits for that instead of some turns."""

import asyncio
import selectors

Events = list[tuple[selectors.SelectorKey, int]]


class IdleSelector(selectors.DefaultSelector):
    """Sees when the loop is about to wait: nothing is scheduled for now, and no socket has anything."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> Events:
        if not self.waiting or timeout == 0:
            return super().select(timeout)
        events: Events = super().select(0)
        if not events:
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        return events


class IdleLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop; `idle` is what it adds."""

    def __init__(self) -> None:
        self._idle_selector = IdleSelector()
        super().__init__(self._idle_selector)

    async def idle(self) -> None:
        """Return once everything has run that was called soon, and what that calls soon, and all that had arrived.

        What another thread or a timer brings later is not waited for.
        """
        future: asyncio.Future[None] = self.create_future()
        self._idle_selector.waiting.append(future)
        await future


async def idle() -> None:
    """As IdleLoop.idle, of the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IdleLoop), f"{loop} does not say when it has nothing to do"
    await loop.idle()
