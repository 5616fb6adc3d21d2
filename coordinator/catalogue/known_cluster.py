# SPDX-License-Identifier: Apache-2.0
"""`upstream.json`: of which Kafka cluster the topics of a data directory are.

    {"version": 1, "cluster_id": "5L6g3nShT-eMCtK--X86sw"}

Offsets are kept by topic, and those of a deleted topic go: so topics of one cluster must never be compared with
another's. To change this format, raise VERSION and keep reading every older one.
"""

from pathlib import Path
from typing import Final

import msgspec

from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.errors import StorageError, storage_error

FILE_NAME: Final = "upstream.json"
VERSION: Final = 1


class CorruptUpstream(StorageError):
    """The file is not one. It is left as it is, for somebody to look at."""


class _ClusterFile(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    cluster_id: str


def read(fs: FileSystem, data_dir: Path) -> str | None:
    """The cluster's id, None where nothing is noted. Blocks. Raises CorruptUpstream and StorageError."""
    path = data_dir / FILE_NAME
    try:
        found = msgspec.json.decode(read_file(fs, path), type=_ClusterFile)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, error, "reading which cluster the topics are of") from error
    except msgspec.DecodeError as error:
        raise CorruptUpstream(path, f"{error}; it says of which cluster the topics are") from None
    if found.version != VERSION:
        raise CorruptUpstream(path, f"its version is {found.version}, but this build reads version {VERSION}")
    return found.cluster_id


def write(fs: FileSystem, data_dir: Path, cluster_id: str) -> None:
    """Note the cluster, durably. Blocks. Raises StorageError."""
    path = data_dir / FILE_NAME
    try:
        atomic_write(fs, path, msgspec.json.encode(_ClusterFile(VERSION, cluster_id)) + b"\n")
    except OSError as error:
        raise storage_error(path, error, "noting which cluster the topics are of") from error
