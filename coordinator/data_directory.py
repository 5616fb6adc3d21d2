# SPDX-License-Identifier: Apache-2.0
"""Opens and recovers the data directory of a single node, and logs what recovery has found."""

from msgspec.structs import asdict

from coordinator.catalogue.startup_checks import raise_if_data_unfit
from coordinator.config import Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import HostResources
from coordinator.telemetry.logs import get_logger
from storage.disk.properties import MetaProperties, load_or_create_meta
from storage.errors import StorageError, get_error_fields
from storage.log_manager import LogManager

log = get_logger("node")


class CannotStart(Exception):
    """The node cannot start; the message is one line for the person who starts it."""


def open_log(settings: Settings, machine: HostResources) -> tuple[LogManager, MetaProperties]:
    """Open the data directory: lock it and recover it after a crash. Raises CannotStart."""
    fs = machine.fs
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
    return log_manager, meta
