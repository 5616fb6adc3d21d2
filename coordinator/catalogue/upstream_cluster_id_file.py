# SPDX-License-Identifier: Apache-2.0
"""The file `upstream.json`, which names the Kafka cluster that the topics of a data directory belong to.

    {"version": 1, "cluster_id": "5L6g3nShT-eMCtK--X86sw"}

Offsets are stored by topic, and those of a deleted topic are dropped: so topics of one cluster must never be compared
with another's. To change this format, raise VERSION and keep reading every older one.
"""

from pathlib import Path
from typing import Final

import msgspec

from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.errors import StorageError, storage_error

FILE_NAME: Final = "upstream.json"
VERSION: Final = 1


class CorruptUpstream(StorageError):
    """`upstream.json`, which names the cluster of the topics, is not valid; it is left for an operator to inspect."""


class _ClusterFile(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    cluster_id: str


def read(fs: FileSystem, data_dir: Path) -> str | None:
    """Return the cluster's id, None if there is no file. Blocks. Raises CorruptUpstream and StorageError."""
    path = data_dir / FILE_NAME
    try:
        found = msgspec.json.decode(read_file(fs, path), type=_ClusterFile)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, error, "reading which cluster the topics are of") from error
    except msgspec.DecodeError as error:
        raise CorruptUpstream(
            path, f"{error}; the file names the cluster that the topics belong to"
        ) from None
    if found.version != VERSION:
        raise CorruptUpstream(path, f"its version is {found.version}, but this build reads version {VERSION}")
    return found.cluster_id


def write(fs: FileSystem, data_dir: Path, cluster_id: str) -> None:
    """Store the cluster's id durably. Blocks. Raises StorageError."""
    path = data_dir / FILE_NAME
    try:
        atomic_write(fs, path, msgspec.json.encode(_ClusterFile(VERSION, cluster_id)) + b"\n")
    except OSError as error:
        raise storage_error(path, error, "noting which cluster the topics are of") from error
