# SPDX-License-Identifier: Apache-2.0
"""--watch: what a command shows, again and again."""

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress

from rich.console import Console

from coordinator.cli.errors import CommandError, say


def repeatedly(
    show: Callable[[], None], every_s: float | None, *, pause: Callable[[float], None] = time.sleep
) -> None:
    """Call `show` once, or every so many seconds until Ctrl-C, on a clean screen where there is one.

    What is there stays until the next is whole, as a cluster may take its time to answer. What fails then is said, and
    tried again: who watches wants to see the end of a restart, too.
    """
    if every_s is None:
        show()
        return
    with suppress(KeyboardInterrupt):
        while True:
            _once(show)
            pause(every_s)


def _once(show: Callable[[], None]) -> None:
    shown, said = _Page(sys.stdout.isatty()), _Page(sys.stderr.isatty())
    try:
        with redirect_stdout(shown), redirect_stderr(said):
            try:
                show()
            except CommandError as error:
                say(str(error))
    finally:
        Console(file=sys.stdout).clear()  # writes nothing where there is no terminal
        sys.stdout.write(shown.getvalue())
        sys.stdout.flush()
        sys.stderr.write(said.getvalue())


class _Page(io.StringIO):
    """What is shown next, made as for the place where it will be shown."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether it is for a terminal."""
        return self._is_terminal
