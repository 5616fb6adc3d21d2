# SPDX-License-Identifier: Apache-2.0
"""Makes a data directory of a broker's partitions: all of it, or nothing.

The copy is built in `importing/` within the data directory, recovered there as after a crash, and moved into place by
renames, the catalogue last. A node does not start on an import that was left half done.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Final

import msgspec

from coordinator.catalogue.file import FILE_NAME, CatalogueFile
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, invalid_reason
from coordinator.catalogue.startup_checks import STAGING
from coordinator.catalogue.topic import Topic
from coordinator.host_resources import HostResources
from coordinator.importer.broker_directories import BrokerDirectories, CannotImport, DirectoryTopic
from coordinator.importer.survey import Survey
from protocol.newtypes import Partition
from storage.disk.checkpoint_file import read_partition_log_start, write_offsets
from storage.disk.filesystem import FileSystem
from storage.disk.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOCK_FILE,
    LOG_START_FILE,
    META_FILE,
    TEMPORARY_SUFFIX,
    partition_dir,
)
from storage.disk.lock import DirectoryLock
from storage.disk.properties import load_or_create_meta
from storage.errors import storage_error
from storage.log_manager import DiscardedRange, recover_directory
from storage.recovery.recovery import find_or_generate_topic_id
from storage.settings import LogSettings

_ASIDE: Final = "before-import-"
"""The name prefix of directories that hold what was in a data directory before an import."""
_LOST_AND_FOUND: Final = "lost+found"
"""A directory of every new file system of some kinds, which belongs to root."""
_COPY_BYTES: Final = 4 << 20
# What a broker derives from the log, or was about to throw away.
_NOT_COPIED: Final = (*INDEX_SUFFIXES, CLEANED_SUFFIX, DELETED_SUFFIX, TEMPORARY_SUFFIX)


class ImportResult(msgspec.Struct):
    """The result of an import. `set_aside` is where --force put what was in the data directory."""

    topics: int
    skipped_topics: list[str]
    cuts: tuple[DiscardedRange, ...]
    failed: dict[Partition, str]
    set_aside: Path | None = None


class DirectoryIdentity(msgspec.Struct, frozen=True):
    """The node and the cluster of the new data directory."""

    node_id: int
    cluster_id: str | None


def import_data_directory(
    machine: HostResources,
    data_dir: Path,
    source: BrokerDirectories,
    survey: Survey,
    identity: DirectoryIdentity,
    *,
    force: bool,
    track: Callable[[Sequence[Partition]], Iterable[Partition]] = iter,
) -> ImportResult:
    """Import a broker's partitions and topics into `data_dir`, and return the result.

    `track` passes the partitions on, and may show the progress. Raises StorageError, and CannotImport if the directory
    is not empty and `force` is False.
    """
    fs = machine.fs
    try:
        fs.mkdir(data_dir)
        lock = DirectoryLock.acquire(fs, data_dir)
        try:
            set_aside = _make_room(fs, data_dir, force=force, now=machine.utc_now())
            staging = data_dir / STAGING
            fs.mkdir(staging)
            for partition in track(list(source.offsets)):
                _copy_partition(fs, source.offsets[partition], staging, partition)
            _copy_log_starts(fs, source, staging)
            imported = _settle(machine, staging, source, survey, identity)
            _move_in(fs, staging, data_dir)
        finally:
            lock.release()
    except OSError as error:
        raise storage_error(data_dir, error, "importing") from error
    imported.set_aside = set_aside
    return imported


def _make_room(fs: FileSystem, data_dir: Path, *, force: bool, now: datetime) -> Path | None:
    """Set aside what is in the data directory, within it: it may be the root of a file system."""
    found = fs.listdir(data_dir)
    names = [
        name for name in found if name not in (LOCK_FILE, _LOST_AND_FOUND) and not name.startswith(_ASIDE)
    ]
    if not names:
        return None
    if not force:
        raise CannotImport(f"{data_dir}: it is not empty ({names[0]}); --force sets aside what is in it")
    at = f"{_ASIDE}{now:%Y%m%dT%H%M%SZ}"
    aside = data_dir / next(
        name for name in chain([at], (f"{at}.{n}" for n in count(2))) if name not in found
    )
    fs.mkdir(aside)
    try:
        _move(fs, names, data_dir, aside)
    except OSError:
        # Another file system may be mounted in it: then all is moved back.
        _move(fs, fs.listdir(aside), aside, data_dir)
        fs.rmdir(aside)
        raise
    return aside


def _move(fs: FileSystem, names: Iterable[str], origin: Path, target: Path) -> None:
    for name in names:
        fs.rename(origin / name, target / name)
    fs.fsync_dir(target)
    fs.fsync_dir(origin)


def _copy_partition(fs: FileSystem, log_dir: Path, staging: Path, partition: Partition) -> None:
    origin = partition_dir(log_dir, OFFSETS_TOPIC, partition)
    directory = partition_dir(staging, OFFSETS_TOPIC, partition)
    fs.mkdir(directory)
    for name in fs.listdir(origin):
        if (origin / name).is_file() and not name.endswith(_NOT_COPIED):
            _copy(fs, origin / name, directory / name)
    fs.fsync_dir(directory)


def _copy_log_starts(fs: FileSystem, source: BrokerDirectories, staging: Path) -> None:
    """Copy the log start offsets: records before them are copied, too, and count as little as at the broker."""
    keys = {(OFFSETS_TOPIC, partition): log_dir for partition, log_dir in source.offsets.items()}
    starts = {key: read_partition_log_start(fs, log_dir, key) for key, log_dir in keys.items()}
    if any(starts.values()):
        write_offsets(fs, staging / LOG_START_FILE, {key: start for key, start in starts.items() if start})


def _copy(fs: FileSystem, origin: Path, path: Path) -> None:
    read = fs.open_read(origin)
    try:
        written = fs.open(path, create=True)
        try:
            for position in range(0, read.size(), _COPY_BYTES):
                written.pwrite([read.pread(_COPY_BYTES, position)], position)
            written.fsync()
        finally:
            written.close()
    finally:
        read.close()


def _settle(
    machine: HostResources,
    staging: Path,
    source: BrokerDirectories,
    survey: Survey,
    identity: DirectoryIdentity,
) -> ImportResult:
    """Recover the copies, as a node does that starts after a crash, and write the catalogue and the identity."""
    fs = machine.fs
    topic_id = find_or_generate_topic_id(fs, staging, OFFSETS_TOPIC)
    recovered = recover_directory(staging, LogSettings(), fs)
    failed = {partition: str(damage) for partition, damage in recovered.failed.items()}
    offsets_topic = Topic(name=OFFSETS_TOPIC, id=topic_id, partitions=source.num_partitions)
    load_or_create_meta(fs, staging, node_id=identity.node_id, cluster_id=identity.cluster_id)
    skipped: list[str] = []
    topics = list(merge_known_topics(source.topics, survey, skipped, machine.new_topic_id))
    CatalogueFile(fs, staging).make(offsets_topic, topics)
    return ImportResult(len(topics), skipped, recovered.cuts, failed)


def merge_known_topics(
    known: Mapping[str, DirectoryTopic], survey: Survey, skipped: list[str], new_topic_id: Callable[[], bytes]
) -> Iterator[Topic]:
    """Yield the known topics, and those that only offsets name, to which clients could not commit otherwise.

    Topics that cannot exist here are added to `skipped`.
    """
    keys = {collision_key(OFFSETS_TOPIC)}
    ids: set[bytes] = set()
    for name in sorted(known.keys() | survey.topics.keys()):
        if name == OFFSETS_TOPIC:
            continue
        if invalid_reason(name) or collision_key(name) in keys:
            skipped.append(name)
            continue
        found = known.get(name)
        partitions = max(found.partitions if found else 0, survey.topics.get(name, 0))
        topic_id = found.id if found and found.id not in (None, *ids) else None
        topic_id = topic_id or new_topic_id()
        keys.add(collision_key(name))
        ids.add(topic_id)
        yield Topic(name=name, id=topic_id, partitions=partitions)


def _move_in(fs: FileSystem, staging: Path, data_dir: Path) -> None:
    # Without the catalogue no node would know the number of partitions: it comes last.
    last = [META_FILE, FILE_NAME]
    names = [name for name in fs.listdir(staging) if name not in (LOCK_FILE, *last)]
    for name in (*names, *last):
        fs.rename(staging / name, data_dir / name)
    fs.remove(staging / LOCK_FILE)
    fs.fsync_dir(data_dir)
    fs.rmdir(staging)
    fs.fsync_dir(data_dir)
