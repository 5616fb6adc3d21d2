# SPDX-License-Identifier: Apache-2.0
"""SIGTERM, SIGINT and SIGHUP: each asks for a clean stop, and none disturbs one that is under way.

An event loop's own handlers end with it, and the default ones then kill: a second SIGTERM, which service managers
and impatient people send, would end a process in the middle of its last steps with a signal instead of a status.
"""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def install_stop_handlers(loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
    """Call `stop` on the loop at each stop signal, until `ignore_stop_signals`.

    An ignored SIGHUP stays ignored: `nohup` starts a process that outlives its terminal. An ignored SIGINT does not: a
    shell without job control starts every process in the background with it ignored.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop)

    for number in STOP_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def ignore_stop_signals() -> None:
    """Ignore stop signals until the process ends, so that none of them changes its exit status."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
