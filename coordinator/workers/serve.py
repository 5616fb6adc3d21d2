# SPDX-License-Identifier: Apache-2.0
"""The supervisor's process from its start to its end."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from coordinator.catalogue.fitting import refuse_half_done
from coordinator.config import Settings
from coordinator.config.log_settings import log_settings
from coordinator.runtime.stop_signals import ignore_stop_signals, on_stop_signal
from coordinator.telemetry.logs import get_logger
from coordinator.workers.control import ControlSocket
from coordinator.workers.messages import Serves
from coordinator.workers.supervisor import Supervisor, WorkerFailed, tell_settled
from storage.disk.filesystem import RealFileSystem
from storage.disk.properties import MetaProperties, load_or_create_meta
from storage.errors import DirectoryLocked, StorageError
from storage.recovery.shared import SharedDirectory

log = get_logger("supervisor")

ORPHANS_WAIT_S: Final = 5.0
"""How long the workers of a supervisor that was killed may take to end."""


def serve(settings: Settings, announce: Callable[[Mapping[int, Serves]], None]) -> int:
    """Run `settings.workers` nodes until SIGTERM, SIGINT or SIGHUP, calling `announce` once they serve.

    Returns the exit code: 1, after one line on stderr, if they cannot start.
    """
    try:
        shared, meta = open_directory(settings)
        return asyncio.run(_serve(settings, shared, meta, announce))
    except (StorageError, WorkerFailed, OSError) as error:
        sys.stderr.write(f"groupkeeper: {error}\n")
        return 1


def open_directory(settings: Settings) -> tuple[SharedDirectory, MetaProperties]:
    """Lock the data directory and settle what was left in it. Raises StorageError."""
    deadline = time.monotonic() + ORPHANS_WAIT_S
    while True:
        try:
            refuse_half_done(RealFileSystem(), settings.data_dir)
            shared, settled = SharedDirectory.open(settings.data_dir, log_settings(settings))
            break
        except DirectoryLocked as locked:
            if locked.pid is None or _is_alive(locked.pid) or time.monotonic() > deadline:
                raise
            # Who locked it is gone: its workers, which have the lock from it, are about to go, too.
            time.sleep(0.05)
    tell_settled(settled)
    try:
        meta = load_or_create_meta(
            RealFileSystem(), settings.data_dir, node_id=settings.node_id, cluster_id=settings.cluster_id
        )
    except StorageError:
        shared.close(clean=False)
        raise
    return shared, meta


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _serve(
    settings: Settings,
    shared: SharedDirectory,
    meta: MetaProperties,
    announce: Callable[[Mapping[int, Serves]], None],
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    on_stop_signal(loop, stop.set)
    clean = True
    try:
        supervisor = Supervisor(settings, shared, meta.cluster_id)
        control = ControlSocket(supervisor, settings.data_dir)
        try:
            await control.start()
            starting = loop.create_task(supervisor.start())
            stopped = loop.create_task(stop.wait())
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                log.info("serving", nodes=settings.workers, data=str(settings.data_dir), pid=os.getpid())
                announce(supervisor.serving)
                await stopped
            starting.cancel()
            stopped.cancel()
        finally:
            log.info("stopping")
            await control.close()
            clean = await supervisor.stop()
    finally:
        await loop.run_in_executor(None, partial(shared.close, clean=clean))
        ignore_stop_signals()
        log.info("stopped")
    return 0
