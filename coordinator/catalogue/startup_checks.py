# SPDX-License-Identifier: Apache-2.0
"""Checks, before a node starts, whether it can start on its data, and with how many partitions."""

from pathlib import Path
from typing import Final

import msgspec

from coordinator.catalogue import file_format, upstream_cluster_id_file
from coordinator.catalogue.file import FILE_NAME
from coordinator.config import Settings
from coordinator.telemetry.logs import get_logger
from storage.disk.filesystem import FileSystem, read_file
from storage.errors import StorageError

log = get_logger("catalogue")

STAGING: Final = "importing"
"""The directory within a data directory that holds an unfinished import."""


def adapt_settings_to_data(fs: FileSystem, settings: Settings) -> Settings:
    """Return the settings with the number of partitions that the data was made with, unless they set another one.

    Data of a broker has a number of its own. A setting that is not the default and differs from the data is left for
    the node to refuse, as is a catalogue that cannot be read.
    """
    there = try_read_partition_count(fs, settings.data_dir)
    given = settings.offsets_topic_num_partitions
    if there is None or given == there or given != Settings().offsets_topic_num_partitions:
        return settings
    log.info("the number of partitions is taken from the data directory", partitions=there, default=given)
    return msgspec.structs.replace(settings, offsets_topic_num_partitions=there)


def try_read_partition_count(fs: FileSystem, data_dir: Path) -> int | None:
    """Return the number of partitions that a data directory was made with, None if its catalogue cannot be read."""
    path = data_dir / FILE_NAME
    try:
        return file_format.decode_partition_count(read_file(fs, path), path)
    except (OSError, StorageError):
        return None


def raise_if_data_unfit(fs: FileSystem, settings: Settings) -> None:
    """Raise StorageError if an import was interrupted, or if a gateway's data is used without its cluster.

    Without the cluster, its logins and permissions do not apply. Clients could also create or delete topics; then the
    next start as a gateway would drop the offsets in the cluster's topics.
    """
    raise_if_import_unfinished(fs, settings.data_dir)
    if settings.is_gateway or not fs.exists(settings.data_dir / upstream_cluster_id_file.FILE_NAME):
        return
    reason = (
        "the groups here are those of a Kafka cluster, and upstream.bootstrap.servers is not set: set it, "
        "or name another data.dir (docs/gateway.md describes how to go on without the cluster)"
    )
    raise StorageError(settings.data_dir / upstream_cluster_id_file.FILE_NAME, reason)


def raise_if_import_unfinished(fs: FileSystem, data_dir: Path) -> None:
    """Raise StorageError if an import was interrupted."""
    if fs.exists(data_dir / STAGING):
        reason = "an import was interrupted here: run `groupkeeper import` again, with --execute --force"
        raise StorageError(data_dir / STAGING, reason)
