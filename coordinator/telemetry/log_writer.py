# SPDX-License-Identifier: Apache-2.0
"""Writes log lines to the stream at once, or through a bounded queue that a thread empties.

A standard error that is an unread pipe blocks its writer. With the queue that writer is a thread of its own, and
lines that find the queue full are dropped and counted.
"""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TextIO

QUEUED_BYTES_MAX: Final = 4 << 20
TICK_S: Final = 1.0
"""The seconds after which the thread writes overdue lines though no other line comes."""


class LineSink(Protocol):
    """Takes finished lines, and never raises."""

    def write(self, text: str) -> None:
        """Take one line with its line break."""

    def flush(self) -> None:
        """Flush the sink, for `logging`, which calls this after each line."""


class DirectSink:
    """Writes to a stream, whose failures (a full disk, a reader that has gone) do not reach the caller."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write and flush one line; one write, so that lines of several threads do not mix."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream is closed
            return

    def flush(self) -> None:
        """Do nothing, because `write` has flushed."""


class QueuedSink:
    """Writes to a file descriptor in a thread of its own; `write` never waits for the reader.

    `overdue` returns lines that are due by the clock, and `dropped_line` the line that reports how many were dropped.
    """

    def __init__(
        self,
        descriptor: int,
        overdue: Callable[[], list[str]],
        dropped_line: Callable[[int], str],
        bytes_max: int = QUEUED_BYTES_MAX,
    ) -> None:
        self._descriptor = descriptor
        self._overdue = overdue
        self._dropped_line = dropped_line
        self._bytes_max = bytes_max
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._dropped_untold = 0
        self._writing = False
        self.dropped = 0
        """The number of lines that were dropped since the start."""
        # A daemon: the process must end though it is in the middle of a write that never returns.
        threading.Thread(target=self._run, name="groupkeeper-log", daemon=True).start()

    def write(self, text: str) -> None:
        """Queue one line, or drop it if the queue is full."""
        line = text.encode("utf-8", "backslashreplace")
        with self._changed:
            if self._bytes + len(line) > self._bytes_max:
                self.dropped += 1
                self._dropped_untold += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Do nothing for `logging`; see `drain`."""

    def drain(self, timeout_s: float) -> None:
        """Return once all that was queued is written, or after `timeout_s`."""
        for line in self._overdue():
            self.write(line)
        with self._changed:
            self._changed.wait_for(lambda: not self._lines and not self._writing, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._lines:
                    self._changed.wait(TICK_S)
                lines, self._lines, self._writing = self._lines, deque(), True
                dropped, self._dropped_untold = self._dropped_untold, 0
            for line in lines:
                self._write(line)
                with self._changed:
                    self._bytes -= len(line)
            if dropped:
                self._write(self._dropped_line(dropped).encode())
            for text in self._overdue():
                self._write(text.encode("utf-8", "backslashreplace"))
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another process has made it non-blocking
                select.select([], [self._descriptor], [], TICK_S)
            except OSError:
                return
