# SPDX-License-Identifier: Apache-2.0
"""Folds the log where it is read.

Ten million rows cost more on their way into the JVM and back than in reading. So a *fold* gets the rows of one range as
Arrow batches, in the order of the log, and returns a few rows in their place. Spark then merges those.

The module is no data source of Spark's: that would start three more Python processes for its plan.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from audit.schema import arrow_schema
from audit.source.plan import Task, plan
from audit.source.read import read_part

TASKS_PER_CORE: Final = 4
"""The wanted number of tasks per core, if there is enough to read: so no core waits long for the last task."""
JOINED_ROWS: Final = 100_000
"""The number of rows of a summary that leave a task together."""


class FoldDefinition(msgspec.Struct, frozen=True):
    """A fold: its input columns of `audit.schema.SCHEMA`, the schema of the rows that it returns, and its function.

    `run` gets the batches of one range, each of one file, and the rules as text. Columns of strings come with a
    dictionary.
    """

    columns: Sequence[str]
    schema: pa.Schema
    run: Callable[[Iterator[pa.RecordBatch], str], Iterator[pa.RecordBatch]]


def fold_local_dirs_lazily(
    spark: SparkSession, log_dirs: Sequence[str], fold: FoldDefinition, rules: str, schema: StructType
) -> DataFrame:
    """Return the fold of local directories, read in ranges that are planned now. Raises AuditError."""
    tasks = plan(log_dirs, tasks_wanted=TASKS_PER_CORE * spark.sparkContext.defaultParallelism)

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _fold_task(tasks[number], fold, rules, schema)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, schema)


def _fold_task(task: Task, fold: FoldDefinition, rules: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the folded ranges of a task in few batches: each batch costs a transfer to the JVM, even empty columns."""
    arrow = arrow_schema(schema)
    waiting: list[pa.RecordBatch] = []
    for part in task:
        for batch in fold.run(read_part(part, fold.columns), rules):
            waiting.append(batch)
            if sum(one.num_rows for one in waiting) >= JOINED_ROWS:
                yield from _joined(waiting, arrow)
                waiting = []
    yield from _joined(waiting, arrow)


def _joined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if batches:
        yield from pa.Table.from_batches(batches).combine_chunks().cast(schema).to_batches()
