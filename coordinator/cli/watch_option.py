# SPDX-License-Identifier: Apache-2.0
"""--watch: run a command's display repeatedly until Ctrl-C."""

import io
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Final

from rich.console import Console

from coordinator.cli.errors import CommandError, print_error

Wait = Callable[[float], bool]
"""Waits at most this many seconds; True once the user has pressed Ctrl-C."""


def show_repeatedly(show: Callable[[], None], every_s: float | None, *, wait: Wait | None = None) -> None:
    """Call `show` once if `every_s` is None, else every `every_s` seconds until Ctrl-C, clearing a terminal in between.

    The previous page stays on the screen until the next one is complete, since a cluster may be slow to respond. A
    CommandError is printed and `show` is called again after the wait, so that an operator can watch a restart. The
    first Ctrl-C ends the watching after the call of `show` that runs, a second one ends the process at once. Call this
    from the main thread unless `wait` is given.
    """
    if every_s is None:
        show()
    elif wait is not None:
        _show_until(show, every_s, wait)
    else:
        with _ctrl_c() as wait_or_ctrl_c:
            _show_until(show, every_s, wait_or_ctrl_c)


def _show_until(show: Callable[[], None], every_s: float, wait: Wait) -> None:
    _once(show)
    while not wait(every_s):
        _once(show)


@contextmanager
def _ctrl_c() -> Iterator[Wait]:
    """Record Ctrl-C instead of raising KeyboardInterrupt, which is lost where Python discards exceptions (`__del__`).

    The handler writes to a socket: setting a threading.Event could deadlock with the wait that it interrupts.
    """
    received, sent = socket.socketpair()
    sent.setblocking(False)
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        pressed = True
        sent.send(b"\0")

    def wait(seconds: float) -> bool:
        select.select([received], [], [], seconds)
        return pressed

    before: Final = signal.signal(signal.SIGINT, handle)
    try:
        yield wait
    finally:
        signal.signal(signal.SIGINT, before)
        received.close()
        sent.close()


def _once(show: Callable[[], None]) -> None:
    shown, errors = _Page(sys.stdout.isatty()), _Page(sys.stderr.isatty())
    try:
        with redirect_stdout(shown), redirect_stderr(errors):
            try:
                show()
            except CommandError as error:
                print_error(str(error))
    finally:
        Console(file=sys.stdout).clear()  # writes nothing where there is no terminal
        sys.stdout.write(shown.getvalue())
        sys.stdout.flush()
        sys.stderr.write(errors.getvalue())


class _Page(io.StringIO):
    """The text of the next page, made as for the place where it will be shown."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Return whether the page is for a terminal."""
        return self._is_terminal
