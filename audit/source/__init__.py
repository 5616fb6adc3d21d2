# SPDX-License-Identifier: Apache-2.0
"""The log as rows for Spark.

Directories may be local paths, which are read by the data source `consumer_offsets`, or URLs of any file system that
Spark knows, which are read by its own reader of binary files; both at once, too.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from audit.schema import SCHEMA, subschema
from audit.source.datasource import NAME
from audit.source.folding import fold_named
from audit.source.plan import check_log_dirs
from audit.source.remote import Fold, is_url, read_urls

__all__ = ["folded", "records"]


def records(spark: SparkSession, log_dirs: Sequence[str], columns: Sequence[str] | None = None) -> DataFrame:
    """The rows of `audit.schema.SCHEMA` in some log directories; fewer columns are read in less time.

    Raises AuditError where there is no log.
    """
    schema = subschema(SCHEMA.names if columns is None else columns)
    return _read(spark, log_dirs, schema.names, schema, iter, {"columns": ",".join(schema.names)})


def folded(spark: SparkSession, log_dirs: Sequence[str], fold: str, rules: str = "") -> DataFrame:
    """What the fold of this name (see `audit.source.folding`) makes of every range of the log by these rules.

    Raises AuditError where there is no log.
    """
    chosen = fold_named(fold)

    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return fold_named(fold).run(rows, rules)

    schema = from_arrow_schema(chosen.schema)
    return _read(spark, log_dirs, chosen.columns, schema, run, {"fold": fold, "fold_rules": rules})


def _read(
    spark: SparkSession,
    log_dirs: Sequence[str],
    columns: Sequence[str],
    schema: StructType,
    fold: Fold,
    options: dict[str, str],
) -> DataFrame:
    urls = [log_dir for log_dir in log_dirs if is_url(log_dir)]
    local = [log_dir for log_dir in log_dirs if not is_url(log_dir)]
    frames = []
    if local:
        check_log_dirs(local)
        frames.append(spark.read.format(NAME).options(log_dirs=",".join(local), **options).load())
    if urls:
        frames.append(read_urls(spark, urls, columns, schema, fold))
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])
