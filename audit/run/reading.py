# SPDX-License-Identifier: Apache-2.0
"""The log, read once by Spark's tasks, while the queries on what comes of it are planned."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.facts.facts import Facts, RunFacts
from audit.facts.inventory import Inventory
from audit.facts.misplaced import misplaced
from audit.facts.plan import fold_rules, kept, planned
from audit.fold import SUMMARY
from audit.options import AuditOptions
from audit.source import folded


class AuditedLog:
    """A log that is being read, once; its facts can be asked about already, and their queries planned meanwhile.

    Planning takes Java seconds, and the readers are other processes.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: AuditOptions,
        inventory: Inventory,
        previous_runs: Sequence[RunFacts] = (),
        previous_offsets: DataFrame | None = None,
    ) -> None:
        rules = msgspec.json.encode(fold_rules(options, inventory)).decode()
        summary = kept(folded(spark, options.log_dirs, SUMMARY, rules))
        _compile_queries(spark, False)
        self._thread = ThreadPoolExecutor(1)
        self._rows = self._thread.submit(_read, summary)
        self._plan = partial(planned, options, inventory, summary, previous_runs, previous_offsets)
        self.facts = self._plan(1)
        """Planned for a summary that one task can hold, as it seldom is larger."""

    def finish(self) -> Facts:
        """Wait for the end; returns `facts`, or others where more tasks make them, or groups are out of place."""
        spread = 1 + self._rows.result() // self.facts.options.cutting.merged_rows
        self._thread.shutdown()
        if spread > 1:
            _compile_queries(self.facts.spark, True)
        facts = self._plan(spread) if spread > 1 else self.facts
        elsewhere = misplaced(facts)
        return facts if elsewhere is None else msgspec.structs.replace(facts, misplaced=elsewhere)


def gather(spark: SparkSession, options: AuditOptions, inventory: Inventory) -> Facts:
    """Read the log, and plan the tables that come of it."""
    return AuditedLog(spark, options, inventory).finish()


def _read(summary: DataFrame) -> int:
    """Read the log; returns how many partial summaries came of it."""
    # A query for the count would need a shuffle, and all that Java has to get ready for one.
    rows: int = summary._jdf.queryExecution().toRdd().count()
    return rows


def _compile_queries(spark: SparkSession, worth_it: bool) -> None:
    """For dozens of queries over small tables it takes longer to compile code than to do without."""
    spark.conf.set("spark.sql.codegen.wholeStage", worth_it)
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if worth_it else "NO_CODEGEN")
