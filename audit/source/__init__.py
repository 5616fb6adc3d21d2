# SPDX-License-Identifier: Apache-2.0
"""The log as rows for Spark."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from audit.source.datasource import NAME
from audit.source.plan import check_log_dirs

__all__ = ["folded", "records"]


def records(spark: SparkSession, log_dirs: Sequence[str], columns: Sequence[str] | None = None) -> DataFrame:
    """The rows of `audit.schema.SCHEMA` in some log directories; fewer columns are read in less time.

    Raises AuditError where there is no log.
    """
    check_log_dirs(log_dirs)
    options = {"columns": ",".join(columns)} if columns is not None else {}
    return spark.read.format(NAME).options(log_dirs=",".join(log_dirs), **options).load()


def folded(spark: SparkSession, log_dirs: Sequence[str], fold: str, rules: str = "") -> DataFrame:
    """What the fold of this name (see `audit.source.folding`) makes of every range of the log by these rules.

    Raises AuditError where there is no log.
    """
    check_log_dirs(log_dirs)
    options = {"fold": fold, "fold_rules": rules}
    return spark.read.format(NAME).options(log_dirs=",".join(log_dirs), **options).load()
