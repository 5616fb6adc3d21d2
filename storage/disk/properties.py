# SPDX-License-Identifier: Apache-2.0
"""`meta.properties`: the owner of a data directory, in the form of Kafka's `MetaProperties` version 1."""

import base64
import re
from pathlib import Path
from typing import Final

import msgspec

from storage.disk.filesystem import FileSystem, atomic_write, new_uuid, read_file
from storage.disk.layout import META_FILE
from storage.errors import CorruptLog, StorageError, storage_error

_VERSION: Final = "1"
_ESCAPED: Final = re.compile(r"\\(.)")


class MetaProperties(msgspec.Struct, frozen=True):
    """The identity of a data directory."""

    cluster_id: str
    node_id: int
    directory_id: str


class WrongDirectory(StorageError):
    """The data directory belongs to another cluster or node."""


def random_id(fs: FileSystem) -> str:
    """Return a new random id as Kafka prints its `Uuid`: 22 characters, URL-safe base64."""
    while True:
        text = encode_uuid(new_uuid(fs))
        # KAFKA-14392: an id that starts with a dash looks like an option on a command line.
        if not text.startswith("-"):
            return text


def encode_uuid(value: bytes) -> str:
    """Return 16 bytes in Kafka's text form."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """Return the 16 bytes of an id in Kafka's text form. Raises ValueError if it is no id."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"an id of {len(value)} bytes")
    return value


def parse_properties(text: str) -> dict[str, str]:
    """Parse a Java properties file, as far as Kafka's own files go: `key=value`, comments, backslash escapes."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.lstrip().startswith(("#", "!")):
            found[_ESCAPED.sub(r"\1", key.strip())] = _ESCAPED.sub(r"\1", value.strip())
    return found


def load_or_create_meta(
    fs: FileSystem, data_dir: Path, *, node_id: int, cluster_id: str | None = None
) -> MetaProperties:
    """Return the directory's identity; a new directory gets one, with a random cluster id unless one is given.

    Raises WrongDirectory if the directory's identity differs from the arguments, CorruptLog if its
    file cannot be parsed, StorageError if it cannot be read or written.
    """
    path = data_dir / META_FILE
    try:
        stored = _load(fs, path)
        if stored is None:
            stored = MetaProperties(cluster_id or random_id(fs), node_id, random_id(fs))
            fs.mkdir(data_dir)
            _store(fs, path, stored)
    except OSError as error:
        raise storage_error(path, error, "opening it") from error
    if stored.node_id != node_id:
        raise WrongDirectory(path, f"it belongs to node {stored.node_id}, and this is node {node_id}")
    if cluster_id is not None and stored.cluster_id != cluster_id:
        raise WrongDirectory(path, f"it belongs to cluster {stored.cluster_id}, and this is {cluster_id}")
    return stored


def _load(fs: FileSystem, path: Path) -> MetaProperties | None:
    try:
        text = read_file(fs, path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    values = parse_properties(text)
    # Version 0, of brokers before KRaft, has broker.id.
    node_id = values.get("node.id", values.get("broker.id", ""))
    if "cluster.id" not in values or not node_id.lstrip("-").isdigit():
        raise CorruptLog(path, "it holds no cluster.id and node.id")
    return MetaProperties(values["cluster.id"], int(node_id), values.get("directory.id", ""))


def _store(fs: FileSystem, path: Path, meta: MetaProperties) -> None:
    lines = [
        "#",
        f"cluster.id={meta.cluster_id}",
        f"directory.id={meta.directory_id}",
        f"node.id={meta.node_id}",
        f"version={_VERSION}",
    ]
    atomic_write(fs, path, "".join(line + "\n" for line in lines).encode())
