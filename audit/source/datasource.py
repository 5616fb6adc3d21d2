# SPDX-License-Identifier: Apache-2.0
"""Spark's data source `consumer_offsets`: the log of local directories as rows.

    spark.dataSource.register(ConsumerOffsets)
    spark.read.format("consumer_offsets").option("log_dirs", "/var/lib/kafka").load()

Options: `log_dirs`, one or several with commas between them (or the path given to `load`); `columns`, names with
commas between them, for those that are needed, which makes reading cheaper; `range_bytes`, how much of a large segment
goes into one task. A file system that only Spark can read: see `audit.source.records`.
"""

from collections.abc import Iterator, MutableMapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from audit.errors import AuditError
from audit.schema import SCHEMA, arrow_schema, subschema
from audit.source.plan import RANGE_BYTES, Task, plan
from audit.source.read import read_part

NAME = "consumer_offsets"


class ConsumerOffsets(DataSource):
    """The data source, as Spark makes it from its options."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return NAME

    def schema(self) -> StructType:
        """All columns, or those of the option `columns`."""
        columns = self.options.get("columns")
        return subschema([name.strip() for name in columns.split(",")]) if columns else SCHEMA

    def reader(self, schema: StructType) -> "ConsumerOffsetsReader":
        """A reader for these columns."""
        return ConsumerOffsetsReader(self.options, schema)


class TaskPartition(InputPartition):
    """What one task reads, on its way to the executor."""

    def __init__(self, value: Task) -> None:
        self.value = value


class ConsumerOffsetsReader(DataSourceReader):
    """Plans on the driver, reads on the executors."""

    def __init__(self, options: MutableMapping[str, str], schema: StructType) -> None:
        self._log_dirs = split_dirs(options.get("log_dirs") or options.get("path") or "")
        self._range_bytes = int(options.get("range_bytes", RANGE_BYTES))
        self._columns = subschema(schema.names).names
        self._schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """A task each."""
        return [TaskPartition(task) for task in plan(self._log_dirs, range_bytes=self._range_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        if isinstance(partition, TaskPartition):
            for part in partition.value:
                for batch in read_part(part, self._columns):
                    yield batch.cast(self._schema)


def split_dirs(text: str) -> list[str]:
    """Directories with commas between them, as Kafka's `log.dirs`. Raises AuditError when there is none."""
    dirs = [part.strip() for part in text.split(",") if part.strip()]
    if not dirs:
        raise AuditError("consumer_offsets needs the option log_dirs: one or several directories")
    return dirs
