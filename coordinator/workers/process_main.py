# SPDX-License-Identifier: Apache-2.0
"""The main function of workers and gateways, which `subprocesses` starts as `python -m ... SOCKET PULSE PARENT NUMBER`.

A process ends when its supervisor does: at once, as in a crash. A worker does so without releasing partitions, because
the next process settles its journal; a gateway's clients connect to a gateway of the next supervisor.
"""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NoReturn

import uvloop

from coordinator.config import Settings
from coordinator.host_resources import HostResources, real_machine
from coordinator.runtime.garbage import GC_THRESHOLDS
from coordinator.runtime.stop_signals import ignore_stop_signals
from coordinator.telemetry import logs
from coordinator.workers.loop_heartbeat import LoopHeartbeat
from coordinator.workers.supervised_process import SupervisedProcess

log = logs.get_logger("worker")

EXIT_ORPHANED: Final = 3
LAST_LINES_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1


class SeparateProcessHooks:
    """The hooks of a worker or gateway that has a process of its own."""

    def __init__(self, pulse: LoopHeartbeat) -> None:
        self._pulse = pulse

    def configure(self, settings: Settings, name: int | str) -> None:
        """Configure the log by the settings, with the name of the process as the node of each line."""
        logs.configure(settings.log_format, settings.log_level, node=name, queued=True)

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """Call `on_stall` whenever the event loop was held for longer than `stall_ms`."""
        self._pulse.set_stall_ended_callback(stall_ms, on_stall)

    def end_orphaned_worker(self, reason: str) -> NoReturn:
        """End the process because the supervisor is gone."""
        log.error("the supervisor is gone", reason=reason)
        exit_at_once(EXIT_ORPHANED)


def exit_at_once(status: int) -> NoReturn:
    """End the process without writing anything more to the data directory."""
    logs.drain(LAST_LINES_S)
    os._exit(status)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; if it cannot, the closed socket reports the end."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended first
        exit_at_once(EXIT_ORPHANED)


Make = Callable[[asyncio.AbstractEventLoop, HostResources, SeparateProcessHooks], SupervisedProcess[Any]]
"""Makes what runs in the process; the supervisor sends its number later, with its settings."""
Run = Callable[[Coroutine[Any, Any, int]], int]


async def _run(sock: socket.socket, pulse_sock: socket.socket, make: Make) -> int:
    loop = asyncio.get_running_loop()
    pulse = LoopHeartbeat(loop, pulse_sock)
    pulse.start()
    process = make(loop, real_machine(), SeparateProcessHooks(pulse))
    await loop.create_connection(lambda: process.channel, sock=sock)
    status = await process.ended
    process.channel.close()
    await asyncio.sleep(0)
    return status


def main(arguments: Sequence[str], make: Make, run: Run = uvloop.run) -> int:
    """Run the process that these arguments describe, on an event loop that `run` makes; returns its exit status."""
    descriptor, pulse, parent, _number = map(int, arguments)
    die_with_parent(parent)
    # A worker is stopped through its supervisor; Ctrl-C and a service manager reach both.
    ignore_stop_signals()
    gc.set_threshold(*GC_THRESHOLDS)
    return run(_run(socket.socket(fileno=descriptor), socket.socket(fileno=pulse), make))
