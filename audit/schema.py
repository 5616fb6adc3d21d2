# SPDX-License-Identifier: Apache-2.0
"""The rows of the log in Spark: `file`, `partition`, and the columns of `storage.columns.schema`."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from storage.columns.schema import COLUMNS

FILE_COLUMNS: Final = pa.schema([("file", pa.string()), ("partition", pa.int32())])
"""The path of the file that holds the batch, and the partition of __consumer_offsets that the batch belongs to."""

SCHEMA: Final[StructType] = from_arrow_schema(pa.schema([*FILE_COLUMNS, *COLUMNS]))

DIFFERENCES: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("partition", pa.int32()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("message", pa.string()),
    ]
)
"""The differences between the log and another state; a check selects the rows of one `kind`."""

MISPLACED: Final = pa.schema([*DIFFERENCES, ("count", pa.int64())])
"""Partitions with groups that belong to others, by the `kind` of the cause, and the number of these groups."""

CHANGED_MEANWHILE: Final = "changed meanwhile"
"""The beginning of `damage` in the row for a file that went away during the audit without a replacement."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of rows with `schema`."""
    return to_arrow_schema(schema, timezone="UTC")


def local_table(spark: SparkSession, schema: pa.Schema, rows: Collection[Sequence[Any]]) -> DataFrame:
    """Return these rows as a Spark table with one partition; as Arrow, since tuples would start Python processes."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema)).coalesce(1)
