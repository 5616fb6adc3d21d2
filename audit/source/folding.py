# SPDX-License-Identifier: Apache-2.0
"""Summaries made where the log is read.

Ten million rows cost more on their way into the JVM and back than in reading. So a *fold* sees the rows of one range
as Arrow batches, in the order of the log, and gives a few rows in their place. Spark then merges those.

This is no data source of Spark's: it would start three more Python processes to plan one.
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
"""So many, if there is enough to read: then no core waits long for the last."""
JOINED_ROWS: Final = 100_000
"""Rows of a summary that leave a task together."""


class Fold(msgspec.Struct, frozen=True):
    """A summary: the columns that it needs of `audit.schema.SCHEMA`, what its rows look like, and the function.

    `run` gets the batches of one range, each of one file, and the rules as text. Columns of
    strings come with a dictionary.
    """

    columns: Sequence[str]
    schema: pa.Schema
    run: Callable[[Iterator[pa.RecordBatch], str], Iterator[pa.RecordBatch]]


def fold_tasks(
    spark: SparkSession, log_dirs: Sequence[str], fold: Fold, rules: str, schema: StructType
) -> DataFrame:
    """The fold of some local directories, read in ranges that are planned now. Raises AuditError."""
    tasks = plan(log_dirs, tasks_wanted=TASKS_PER_CORE * spark.sparkContext.defaultParallelism)

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _fold_task(tasks[number], fold, rules, schema)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, schema)


def _fold_task(task: Task, fold: Fold, rules: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """What all ranges of a task are folded to, in few batches: each costs its way to the JVM, empty columns as well."""
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
