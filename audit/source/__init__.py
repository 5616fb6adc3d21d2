# SPDX-License-Identifier: Apache-2.0
"""The log as rows for Spark, or what a fold makes of them where they are read.

Directories may be local paths, which are read in ranges, or URLs of any file system that Spark knows, which are read
by its own reader of binary files; both at once, too.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from audit.schema import SCHEMA, subschema
from audit.source.datasource import NAME, ConsumerOffsets
from audit.source.folding import fold_named, fold_tasks
from audit.source.plan import check_log_dirs
from audit.source.remote import is_url, read_urls

__all__ = ["folded", "records"]


def records(spark: SparkSession, log_dirs: Sequence[str], columns: Sequence[str] | None = None) -> DataFrame:
    """The rows of `audit.schema.SCHEMA` in some log directories; fewer columns are read in less time.

    Raises AuditError where there is no log.
    """
    schema = subschema(SCHEMA.names if columns is None else columns)
    local, urls = _apart(log_dirs)
    frames = []
    if local:
        spark.dataSource.register(ConsumerOffsets)  # which Spark starts Python for: not before it is needed
        options = {"log_dirs": ",".join(local), "columns": ",".join(schema.names)}
        frames.append(spark.read.format(NAME).options(**options).load())
    if urls:
        frames.append(read_urls(spark, urls, schema.names, schema, iter))
    return _together(frames)


def folded(spark: SparkSession, log_dirs: Sequence[str], fold: str, rules: str = "") -> DataFrame:
    """What the fold of this name (see `audit.source.folding`) makes of every range of the log by these rules.

    What there is to read of local directories is planned now. Raises AuditError where there is no log.
    """
    chosen = fold_named(fold)
    schema: StructType = from_arrow_schema(chosen.schema)
    local, urls = _apart(log_dirs)
    frames = []
    if local:
        frames.append(fold_tasks(spark, local, fold, rules, schema))
    if urls:

        def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return fold_named(fold).run(rows, rules)

        frames.append(read_urls(spark, urls, chosen.columns, schema, run))
    return _together(frames)


def _apart(log_dirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Local directories, which have to be there, and URLs."""
    local = [log_dir for log_dir in log_dirs if not is_url(log_dir)]
    check_log_dirs(local)
    return local, [log_dir for log_dir in log_dirs if is_url(log_dir)]


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])
