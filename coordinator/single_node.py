# SPDX-License-Identifier: Apache-2.0
"""Runs a single node, which has its process for itself, and serves until a signal ends it."""

import asyncio
import gc
from collections.abc import Callable

import uvloop

from coordinator.app import App, ServingAddresses
from coordinator.config import Settings
from coordinator.host_resources import HostResources, real_machine
from coordinator.logs.files.opening import open_file_log
from coordinator.node_runtime import start_node_runtime
from coordinator.runtime.garbage import GC_THRESHOLDS
from coordinator.runtime.stop_signals import ignore_stop_signals, install_stop_handlers
from coordinator.start_error import CannotStart
from coordinator.telemetry.logs import write_last_line


def serve(settings: Settings, announce: Callable[[ServingAddresses], None] = lambda _serving: None) -> int:
    """Run a node until SIGTERM, SIGINT or SIGHUP, calling `announce` once it serves.

    Returns the exit code: 1, after one line on stderr, if the node cannot start.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        return uvloop.run(_serve(settings, announce))
    except CannotStart as error:
        write_last_line(str(error))
        return 1


def open_single_node(settings: Settings, loop: asyncio.AbstractEventLoop, machine: HostResources) -> App:
    """Return a node on the log in its data directory, which it has for itself. Raises CannotStart."""
    runtime = start_node_runtime(settings, loop, machine)
    try:
        return App(runtime, open_file_log(runtime))
    except CannotStart:
        runtime.io.close()
        raise


async def _serve(settings: Settings, announce: Callable[[ServingAddresses], None]) -> int:
    loop = asyncio.get_running_loop()
    app = open_single_node(settings, loop, real_machine())
    stop = asyncio.Event()
    install_stop_handlers(loop, stop.set)
    try:
        announce(await app.start())
        await stop.wait()
    finally:
        await app.stop()
        ignore_stop_signals()
    return 0
