# SPDX-License-Identifier: Apache-2.0
"""Reads the log once in Spark's tasks, while the queries on the resulting tables are planned."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.facts.fact_tables import build_fold_parameters, checkpoint_lazily, make_lazy_facts
from audit.facts.inventory import LogInventory
from audit.facts.log_facts import Facts, RunSummary
from audit.facts.misplaced import list_partitions_with_misplaced_groups
from audit.fold import SUMMARY
from audit.options import AuditOptions
from audit.source import fold_log_dirs


class BackgroundLogReader:
    """Reads a log once, in the background, so that queries on its `facts` can be planned meanwhile.

    Java needs seconds to plan them, while other processes do the reading.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: AuditOptions,
        inventory: LogInventory,
        previous_runs: Sequence[RunSummary] = (),
        previous_offsets: DataFrame | None = None,
    ) -> None:
        rules = msgspec.json.encode(build_fold_parameters(options, inventory)).decode()
        summary = checkpoint_lazily(fold_log_dirs(spark, options.log_dirs, SUMMARY, rules))
        _compile_queries(spark, False)
        self._thread = ThreadPoolExecutor(1)
        self._rows = self._thread.submit(_read, summary)
        self._plan = partial(make_lazy_facts, options, inventory, summary, previous_runs, previous_offsets)
        self.facts = self._plan(1)
        """The tables, planned for a summary that one task can hold, as it seldom is larger."""

    def wait_for_facts(self) -> Facts:
        """Wait until the log is read; return `facts`, or new facts if they need more tasks or groups are misplaced."""
        spread = 1 + self._rows.result() // self.facts.options.cutting.merged_rows
        self._thread.shutdown()
        if spread > 1:
            _compile_queries(self.facts.spark, True)
        facts = self._plan(spread) if spread > 1 else self.facts
        elsewhere = list_partitions_with_misplaced_groups(facts)
        return facts if elsewhere is None else msgspec.structs.replace(facts, misplaced=elsewhere)


def read_facts(spark: SparkSession, options: AuditOptions, inventory: LogInventory) -> Facts:
    """Read the log, and plan the tables from it."""
    return BackgroundLogReader(spark, options, inventory).wait_for_facts()


def _read(summary: DataFrame) -> int:
    """Read the log; return the number of its partial summaries."""
    # A query for the count would need a shuffle, for which Java has much to prepare.
    rows: int = summary._jdf.queryExecution().toRdd().count()
    return rows


def _compile_queries(spark: SparkSession, worth_it: bool) -> None:
    """Let Spark compile queries only if `worth_it`: for dozens of queries over small tables, compiling takes longer."""
    spark.conf.set("spark.sql.codegen.wholeStage", worth_it)
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if worth_it else "NO_CODEGEN")
