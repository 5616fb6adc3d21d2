# SPDX-License-Identifier: Apache-2.0
"""Opens the log in files that a node is given: in a data directory of its own, or in one that workers share."""

from msgspec.structs import asdict

from coordinator.catalogue.startup_checks import raise_if_data_unfit
from coordinator.config.storage_settings import make_storage_settings
from coordinator.logs.files.committer import Committer, FlushMode
from coordinator.logs.files.fetcher import FileLogFetcher
from coordinator.logs.files.file_log import FileLog
from coordinator.logs.files.upkeep import FileLogUpkeep
from coordinator.logs.node_log import NodeLog
from coordinator.node_runtime import NodeRuntime
from coordinator.start_error import CannotStart
from coordinator.telemetry.logs import get_logger
from storage.disk.properties import load_or_create_meta
from storage.errors import StorageError, get_error_fields
from storage.format.compression import NAMES as COMPRESSIONS
from storage.log_manager import LogManager

log = get_logger("node")


def open_file_log(runtime: NodeRuntime) -> NodeLog:
    """Open a data directory for one node: lock it and recover it after a crash. Raises CannotStart."""
    settings, fs = runtime.settings, runtime.machine.fs
    try:
        raise_if_data_unfit(fs, settings)
        log_manager = LogManager.open(settings.data_dir, make_storage_settings(settings), fs)
    except StorageError as error:
        raise CannotStart(str(error)) from error
    try:
        meta = load_or_create_meta(
            fs, settings.data_dir, node_id=settings.node_id, cluster_id=settings.cluster_id
        )
    except StorageError as error:
        log_manager.close()
        raise CannotStart(str(error)) from error
    for cut in log_manager.cuts:
        log.warning(
            "recovery cut an incomplete write", **{k: str(v) for k, v in asdict(cut).items() if v is not None}
        )
    for partition, damage in log_manager.failed_partitions.items():
        log.error("partition is damaged", partition=partition, **get_error_fields(damage))
    return make_node_log(make_file_log(log_manager, runtime), runtime, meta.cluster_id)


def open_shared_file_log(runtime: NodeRuntime, topic_id: bytes) -> FileLog:
    """Open one worker's part of a data directory, whose supervisor holds the lock. Raises CannotStart."""
    settings = runtime.settings
    try:
        log_manager = LogManager.open_in_shared_directory(
            settings.data_dir,
            make_storage_settings(settings),
            topic_id,
            settings.node_id,
            runtime.machine.fs,
        )
    except StorageError as error:
        raise CannotStart(str(error)) from error
    return make_file_log(log_manager, runtime)


def make_file_log(log_manager: LogManager, runtime: NodeRuntime) -> FileLog:
    """Return the log port over opened files, with a flush thread."""
    settings, machine = runtime.settings, runtime.machine
    committer = Committer(
        runtime.loop,
        log_manager,
        # A flush must not wait behind a checkpoint's syncs, so each has a thread of its own.
        machine.thread(runtime.loop, "groupkeeper-flush"),
        machine.clock,
        runtime.stats,
        FlushMode(settings.log_flush),
        batch_bytes_max=settings.message_max_bytes,
        offset_value_version=settings.offsets_value_version,
        compression=COMPRESSIONS.index(settings.offsets_topic_compression_codec),
    )
    return FileLog(
        log_manager, committer, runtime.io, machine.clock, runtime.stats, settings.offsets_load_buffer_size
    )


def make_node_log(file_log: FileLog, runtime: NodeRuntime, cluster_id: str) -> NodeLog:
    """Return a node's log in files, with the upkeep and the fetcher of files."""
    return NodeLog(
        file_log, FileLogUpkeep(file_log, runtime), FileLogFetcher(file_log.files, runtime.io), cluster_id
    )
