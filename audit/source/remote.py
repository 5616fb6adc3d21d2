# SPDX-License-Identifier: Apache-2.0
"""Logs on a file system that only Spark can read (s3a, hdfs, …), through its own reader of binary files.

That reader returns whole files. So there is one task for a segment, which is held in memory a few times over (Java,
Arrow, Python): FILE_BYTES_MAX is the limit of its size, and an executor should have four times as much memory for each
of its cores. Such a log is a copy and does not change while it is read; local directories, which may belong to a live
node, are read in ranges, in bounded memory.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from audit.errors import AuditError
from audit.schema import arrow_schema
from audit.source.directory_snapshot import (
    DirectorySnapshot,
    PartitionSnapshot,
    find_offsets_after_broker,
    parse_partition_offsets,
)
from audit.source.journals import read_directory_journals
from audit.source.plan import Range
from audit.source.read import decode_chunk_rows, next_offset, read_range_chunks, skip_before_log_start
from storage.columns.batch_finder import Read, iter_segment_chunks
from storage.disk.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    JOURNAL_DIR,
    LOG_START_FILE,
    OFFSETS_TOPIC,
    OPEN_JOURNALS_FILE,
    SWAP_SUFFIX,
    TAKEN_OVER_FILE,
    parse_journal,
    parse_partition_dir,
    parse_segment,
)
from storage.errors import CorruptLog
from storage.journal.journal_registry import is_matching_clean_mark, parse_registry_file

FILE_BYTES_MAX: Final = 256 << 20
"""The size above which a segment is refused: it would have to fit into memory several times."""
JOURNALS_BYTES_MAX: Final = 512 << 20
"""The size above which the journals of a log are refused: they are read on the driver."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

Fold = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The function from the rows of one file to the rows of its summary."""


class _Segment(msgspec.Struct, frozen=True):
    path: str
    partition: int
    base_offset: int
    newest: bool


def is_url(log_dir: str) -> bool:
    """Return whether a log directory is named by a URL, such as s3a://bucket/logs or file:/var/lib/kafka."""
    return _URL.match(log_dir) is not None


def take_remote_dir_snapshot(spark: SparkSession, url: str) -> DirectorySnapshot:
    """Read the state of a log directory that a URL names. Raises AuditError."""
    url = url.rstrip("/")
    segments: dict[int, list[_Segment]] = {}
    for segment in _list(spark, url):
        segments.setdefault(segment.partition, []).append(segment)
    return DirectorySnapshot(
        [
            PartitionSnapshot(
                partition, found[0].path.rsplit("/", 1)[0], found[0].base_offset, found[-1].base_offset
            )
            for partition, found in segments.items()
        ],
        _offsets(spark, f"{url}/{CLEANER_OFFSET_FILE}"),
        _offsets(spark, f"{url}/{LOG_START_FILE}"),
        _written_from(spark, url, segments) if _is_ours(spark, url) else None,
    )


def _offsets(spark: SparkSession, path: str) -> dict[int, int] | None:
    content = _content(spark, path)
    return None if content is None else parse_partition_offsets(content)


def _content(spark: SparkSession, path: str) -> bytes | None:
    """Return the bytes of a small file, or None if it does not exist. Raises AuditError.

    The file system itself is read, because Spark's reader skips files whose names begin with a dot.
    """
    java, context = spark._jvm, spark._jsc
    assert java is not None, "Spark has started"
    try:
        place = java.org.apache.hadoop.fs.Path(path)
        system = place.getFileSystem(context.hadoopConfiguration())
        if not system.exists(place):
            return None
        stream = system.open(place)
        try:
            return bytes(java.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
    except Py4JJavaError as error:
        raise AuditError(f"{path}: {error.java_exception.toString()}") from error


def _written_from(spark: SparkSession, url: str, partitions: Iterable[int]) -> dict[int, int]:
    return find_offsets_after_broker(_offsets(spark, f"{url}/{TAKEN_OVER_FILE}") or {}, partitions)


def _is_ours(spark: SparkSession, url: str) -> bool:
    """Return whether a node of this kind was the last to write, as `is_directory_unchanged` for a local one."""
    noted = _content(spark, f"{url}/{OPEN_JOURNALS_FILE}")
    if noted is None:
        return False
    try:
        note = parse_registry_file(noted, Path(OPEN_JOURNALS_FILE))
    except CorruptLog:
        return True
    return note.closed is None or is_matching_clean_mark(
        note, _content(spark, f"{url}/{CLEAN_SHUTDOWN_FILE}") or b""
    )


def fold_log_dirs_at_urls(
    spark: SparkSession, urls: Sequence[str], columns: Sequence[str], schema: StructType, fold: Fold
) -> DataFrame:
    """Return the rows, with `schema`, that `fold` makes of the rows of these directories, read with `columns`.

    Raises AuditError if there is no log, or a log that cannot be read like this.
    """
    frames = [_read_url(spark, url.rstrip("/"), columns, schema, fold) for url in urls]
    result = frames[0]
    for frame in frames[1:]:
        result = result.union(frame)
    return result


def _read_url(
    spark: SparkSession, url: str, columns: Sequence[str], schema: StructType, fold: Fold
) -> DataFrame:
    segments = _list(spark, url)
    arrow = arrow_schema(schema)
    if not segments:
        raise AuditError(f"{url}: no directory {OFFSETS_TOPIC}-<partition> with segments is in it")
    by_path = {segment.path: segment for segment in segments}
    starts = _offsets(spark, f"{url}/{LOG_START_FILE}") or {}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path, content in _files(batches):
            segment = by_path[path]
            for batch in fold(_segment_rows(segment, content, columns, starts.get(segment.partition, 0))):
                yield batch.cast(arrow)

    files = _binary(spark, list(by_path)).select("path", "content")
    found = files.mapInArrow(read, schema)
    journal_files = _listed(spark, [f"{url}/{JOURNAL_DIR}", f"{url}/{JOURNAL_DIR}.*"])
    journal_files = {
        path: size for path, size in journal_files.items() if parse_journal(PurePosixPath(path).name)
    }
    if not journal_files:
        return found
    ends = _ends(spark, segments)
    tables = list(_journal_rows(spark, url, journal_files, ends, columns, fold))
    if not tables:
        return found
    return found.union(spark.createDataFrame(pa.Table.from_batches(tables).cast(arrow), schema))


def _binary(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(paths))


def _listed(spark: SparkSession, globs: Sequence[str]) -> dict[str, int]:
    """Return the existing files that match the patterns, or lie in directories that match, with their sizes.

    The file system itself is asked, because Spark's reader skips empty files. Raises AuditError.
    """
    java, context = spark._jvm, spark._jsc
    assert java is not None, "Spark has started"
    found: dict[str, int] = {}
    for glob in globs:
        try:
            place = java.org.apache.hadoop.fs.Path(glob)
            system = place.getFileSystem(context.hadoopConfiguration())
            for matching in system.globStatus(place) or ():
                found.update(
                    (each.getPath().toString(), each.getLen())
                    for each in (
                        system.listStatus(matching.getPath()) if matching.isDirectory() else [matching]
                    )
                    if not each.isDirectory()
                )
        except Py4JJavaError as error:
            raise AuditError(f"{glob}: {error.java_exception.toString()}") from error
    return found


def _list(spark: SparkSession, url: str) -> list[_Segment]:
    partitions: dict[int, list[tuple[int, str]]] = {}
    own = parse_partition_dir(PurePosixPath(url).name, OFFSETS_TOPIC)
    for path, size in _listed(spark, [url if own is not None else f"{url}/{OFFSETS_TOPIC}-*"]).items():
        name = PurePosixPath(path)
        partition = parse_partition_dir(name.parent.name, OFFSETS_TOPIC)
        base_offset = parse_segment(name.name)
        if name.name.endswith(SWAP_SUFFIX):
            raise AuditError(f"{path}: this copy was made in the middle of a compaction; make another")
        if partition is None or base_offset is None:
            continue
        if size > FILE_BYTES_MAX:
            raise AuditError(
                f"{path}: {size} bytes, and Spark reads whole files, of which {FILE_BYTES_MAX} bytes are taken:"
                " audit it where it is a local file"
            )
        partitions.setdefault(partition, []).append((base_offset, path))
    return [
        _Segment(path, partition, base_offset, (base_offset, path) == max(found))
        for partition, found in sorted(partitions.items())
        for base_offset, path in sorted(found)
    ]


def _files(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, memoryview]]:
    """Yield the path and the content of each row, which is not copied."""
    for batch in batches:
        for index in range(batch.num_rows):
            content = batch.column("content")[index].as_buffer()
            yield batch.column("path")[index].as_py(), memoryview(content)


def _segment_rows(
    segment: _Segment, content: memoryview, columns: Sequence[str], log_start: int
) -> Iterator[pa.RecordBatch]:
    chunks = (
        (segment.path, chunk)
        for chunk in iter_segment_chunks(_reader(content), 0, len(content), is_newest_segment=segment.newest)
    )
    for path, chunk in skip_before_log_start(chunks, segment.base_offset, log_start):
        yield from decode_chunk_rows(path, segment.partition, chunk, columns)


def _reader(content: memoryview) -> Read:
    def read(position: int, size: int) -> bytes:
        return bytes(content[position : position + size])

    return read


def _ends(spark: SparkSession, segments: Sequence[_Segment]) -> dict[int, int]:
    """Return, by partition, the offset behind the end of its newest segment."""
    newest = {segment.path: segment for segment in segments if segment.newest}

    def ends(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path, content in _files(batches):
            segment, end = newest[path], newest[path].base_offset
            for chunk in iter_segment_chunks(_reader(content), 0, len(content), is_newest_segment=True):
                end = max(end, next_offset(chunk))
            yield pa.RecordBatch.from_pydict({"partition": [segment.partition], "end": [end]})

    files = _binary(spark, list(newest)).select("path", "content")
    found = files.mapInArrow(ends, "partition LONG, end LONG").collect()
    return {row["partition"]: row["end"] for row in found}


def _download(spark: SparkSession, files: Sequence[str], directory: Path) -> dict[str, str]:
    """Copy files to a local directory, each below the name of its own directory; return their URLs by local path."""
    urls = {}
    for row in _binary(spark, files).select("path", "content").toLocalIterator():
        place = PurePosixPath(row.path)
        local = Path(directory, place.parent.name, place.name)
        local.parent.mkdir(exist_ok=True)
        local.write_bytes(row.content)
        urls[str(local)] = row.path
    return urls


def _journal_rows(
    spark: SparkSession,
    url: str,
    files: Mapping[str, int],
    ends: Mapping[int, int],
    columns: Sequence[str],
    fold: Fold,
) -> Iterator[pa.RecordBatch]:
    """Yield the fold of the batches that only journals have; the journals are copied to the driver."""
    if sum(files.values()) > JOURNALS_BYTES_MAX:
        raise AuditError(
            f"{url}: {sum(files.values())} bytes of journals, and at most {JOURNALS_BYTES_MAX} are read"
        )
    with tempfile.TemporaryDirectory(prefix="groupkeeper-audit-") as name:
        urls = _download(spark, list(files), Path(name))
        found = read_directory_journals(Path(name))
        for damage in found.damages:
            raise AuditError(f"{urls[damage.path]}: {damage.reason}")
        for partition, parts in sorted(found.parts.items()):
            end = ends.get(partition, 0)
            part = Range(
                directory=name,
                partition=partition,
                segment=None,
                start=0,
                end=0,
                first_offset=end,
                next_offset=end,
                last=True,
                journal=tuple(parts),
            )
            yield from fold(
                batch
                for path, chunk in read_range_chunks(part)
                for batch in decode_chunk_rows(urls[path], partition, chunk, columns)
            )
