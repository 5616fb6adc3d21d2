# SPDX-License-Identifier: Apache-2.0
"""The end of a supervisor's channel in a worker or a gateway, and how such a process ends."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from coordinator.config import Settings
from coordinator.runtime.tasks import Tasks
from coordinator.workers.channel import Channel
from coordinator.workers.messages import ProcessCannotServe

EXIT_FAILED: Final = 1

Received = TypeVar("Received")


class ProcessHooks(Protocol):
    """The effects of a worker or gateway on the process that it runs in."""

    def configure(self, settings: Settings, name: int | str) -> None:
        """Configure the process by its settings, such as the form of its log, and give it its name."""

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """Call `on_stall` on the event loop whenever that was held for longer than `stall_ms`."""

    def end_orphaned_worker(self, reason: str) -> None:
        """End the process in the middle of its work: the supervisor is gone, and it must write nothing more."""


class SupervisedProcess(ABC, Generic[Received]):
    """A worker or a gateway, which runs in a process that a supervisor has started.

    Connect `channel`, and await `ended`, the exit status; then close the channel.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, hooks: ProcessHooks, kind: object) -> None:
        """`kind` is the type of the supervisor's messages."""
        self._hooks = hooks
        self._tasks = Tasks(self._failed)
        self.channel: Channel[Received] = Channel(kind, self._got, self._orphaned)
        self.ended: asyncio.Future[int] = loop.create_future()

    @abstractmethod
    def _got(self, message: Received) -> None:
        """Carry out a message of the supervisor."""

    def _cannot_serve(self, reason: str) -> None:
        self.channel.send(ProcessCannotServe(reason))
        self.ended.set_result(EXIT_FAILED)

    def _failed(self, _error: BaseException) -> None:
        """End the process with a failure, so that the supervisor starts another one."""
        if not self.ended.done():
            self.ended.set_result(EXIT_FAILED)

    def _orphaned(self, reason: str) -> None:
        if not self.ended.done():
            self._hooks.end_orphaned_worker(reason)
