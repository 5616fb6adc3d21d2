# SPDX-License-Identifier: Apache-2.0
"""Reads logs for Spark: where the rows of the log are read, a fold turns them into a summary of a few rows.

Directories may be local paths, which are read in ranges, or URLs of any file system that Spark knows, which are read by
its own reader of binary files; both at once, too.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from audit.source.folding import FoldDefinition, fold_local_dirs_lazily
from audit.source.plan import check_log_dirs
from audit.source.remote import fold_log_dirs_at_urls, is_url

__all__ = ["fold_log_dirs"]


def fold_log_dirs(
    spark: SparkSession, log_dirs: Sequence[str], fold: FoldDefinition, rules: str = ""
) -> DataFrame:
    """Return the rows that `fold` makes of every range of the log by these rules.

    Local directories are listed now, and read when Spark computes the rows. Raises AuditError if there is no log.
    """
    schema: StructType = from_arrow_schema(fold.schema)
    local, urls = _apart(log_dirs)
    frames = []
    if local:
        frames.append(fold_local_dirs_lazily(spark, local, fold, rules, schema))
    if urls:

        def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return fold.run(rows, rules)

        frames.append(fold_log_dirs_at_urls(spark, urls, fold.columns, schema, run))
    return _together(frames)


def _apart(log_dirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the local directories, which have to exist, and the URLs."""
    local = [log_dir for log_dir in log_dirs if not is_url(log_dir)]
    check_log_dirs(local)
    return local, [log_dir for log_dir in log_dirs if is_url(log_dir)]


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])
