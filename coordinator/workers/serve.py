# SPDX-License-Identifier: Apache-2.0
"""The supervisor's process from its start to its end."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from coordinator.catalogue.startup_checks import raise_if_data_unfit
from coordinator.config import ConfigError, Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import HostResources, real_machine
from coordinator.runtime.allocator import PAGE_WISE
from coordinator.runtime.stop_signals import ignore_stop_signals, install_stop_handlers
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger, write_last_line
from coordinator.workers.dead_worker_journals import log_journal_replay_result
from coordinator.workers.gateway_process_pool import ClusterUnusable
from coordinator.workers.messages import WorkerListening
from coordinator.workers.operator_socket import ControlSocket
from coordinator.workers.process_fleet import ProcessStartFailed
from coordinator.workers.process_launcher import Launcher
from coordinator.workers.subprocesses import WORKER_MODULE, SubprocessLauncher, is_alive
from coordinator.workers.supervisor import Supervisor
from storage.disk.properties import MetaProperties, load_or_create_meta
from storage.errors import DirectoryLocked, StorageError
from storage.recovery.shared_directory import SharedDirectoryFiles

log = get_logger("supervisor")

GATEWAY_MODULE: Final = "coordinator.workers.gateway_main"
Announce = Callable[[Mapping[int, WorkerListening]], None]
CANNOT_START: Final = (
    StorageError,
    ConfigError,
    ClusterUnusable,
    ProcessStartFailed,
    OSError,
)
EXIT_FAILED: Final = 1
ORPHANS_WAIT_S: Final = 5.0
"""The seconds that the workers of a killed supervisor may take to end."""


def serve(
    settings: Settings, announce: Announce, worker: str = WORKER_MODULE, gateway: str = GATEWAY_MODULE
) -> int:
    """Run `settings.workers` nodes until SIGTERM, SIGINT or SIGHUP, calling `announce` once they serve.

    A worker is a process that runs the module `worker`, a gateway one that runs `gateway`.

    Returns the exit code: 1, after one line on stderr, if they cannot start, or after a failure of the supervisor.
    """
    try:
        return asyncio.run(_open_and_serve(settings, announce, worker, gateway))
    except CANNOT_START as error:
        write_last_line(str(error))
        return EXIT_FAILED


async def _open_and_serve(settings: Settings, announce: Announce, worker: str, gateway: str) -> int:
    machine = real_machine()
    shared, meta = await open_shared_data_directory(settings, machine)
    launch = SubprocessLauncher(shared.lock_descriptors, worker)
    launch_gateway = SubprocessLauncher(tuple, gateway, PAGE_WISE)
    return await _serve(settings, machine, shared, meta, announce, launch, launch_gateway)


async def open_shared_data_directory(
    settings: Settings, machine: HostResources
) -> tuple[SharedDirectoryFiles, MetaProperties]:
    """Lock the data directory and settle the journals in it, which blocks. Raises StorageError."""
    loop, fs = asyncio.get_running_loop(), machine.fs
    deadline = loop.time() + ORPHANS_WAIT_S
    while True:
        try:
            raise_if_data_unfit(fs, settings)
            shared, settled = SharedDirectoryFiles.open(
                settings.data_dir, make_storage_settings(settings), fs
            )
            break
        except DirectoryLocked as locked:
            if locked.pid is None or is_alive(locked.pid) or loop.time() > deadline:
                raise
            # The supervisor that locked it is gone: its workers, which inherited the lock, are about to end, too.
            await asyncio.sleep(0.05)
    log_journal_replay_result(settled)
    try:
        meta = load_or_create_meta(
            fs, settings.data_dir, node_id=settings.node_id, cluster_id=settings.cluster_id
        )
    except StorageError:
        shared.close(clean=False)
        raise
    return shared, meta


async def _serve(
    settings: Settings,
    machine: HostResources,
    shared: SharedDirectoryFiles,
    meta: MetaProperties,
    announce: Announce,
    launch: Launcher,
    launch_gateway: Launcher,
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    install_stop_handlers(loop, stop.set)
    tasks = Tasks()
    clean = True
    try:
        supervisor = Supervisor(settings, loop, machine, launch, shared, meta.cluster_id, launch_gateway)
        supervisor.on_failed = stop.set
        control = ControlSocket(supervisor, settings.data_dir)
        try:
            await control.start()
            starting = tasks.start(_start(supervisor), "start")
            stopped = tasks.start(stop.wait(), "wait for a signal")
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                failure = starting.result()
                if failure is not None:
                    raise failure
                log.info("serving", nodes=settings.workers, data=str(settings.data_dir), pid=os.getpid())
                announce(supervisor.serving)
                await stopped
            tasks.cancel()
        finally:
            log.info("stopping")
            await control.close()
            clean = await supervisor.stop()
    finally:
        await loop.run_in_executor(None, partial(shared.close, clean=clean))
        ignore_stop_signals()
        log.info("stopped")
    return EXIT_FAILED if supervisor.has_failed else 0


async def _start(supervisor: Supervisor) -> Exception | None:
    """Start the supervisor; return the error if it cannot start."""
    try:
        await supervisor.start()
    except CANNOT_START as error:
        return error
    return None
