# SPDX-License-Identifier: Apache-2.0
"""--watch: what a command shows, again and again."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console

from coordinator.cli.errors import CommandError, say


def repeatedly(
    show: Callable[[], None], every_s: float | None, *, pause: Callable[[float], None] = time.sleep
) -> None:
    """Call `show` once, or every so many seconds until Ctrl-C, on a clean screen where there is one.

    What fails then is said, and tried again: who watches wants to see the end of a restart, too.
    """
    if every_s is None:
        show()
        return
    with suppress(KeyboardInterrupt):
        while True:
            Console(file=sys.stdout).clear()  # writes nothing where there is no terminal
            try:
                show()
            except CommandError as error:
                say(str(error))
            sys.stdout.flush()
            pause(every_s)
