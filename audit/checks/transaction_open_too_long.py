# SPDX-License-Identifier: Apache-2.0
"""Transactions that nobody ended."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    of_producer = Window.partitionBy("partition", "producer_id")
    here = F.struct("segment", "position")
    # what is open at the end of a range is open behind its own last marker, and until a marker in a later one
    rows = (
        facts.transactions.withColumn(
            "last_marker", F.max(F.when(F.col("has_marker"), here)).over(of_producer)
        )
        .where(
            F.col("open_since").isNotNull() & (F.col("last_marker").isNull() | (here >= F.col("last_marker")))
        )
        .groupBy("partition", "producer_id")
        .agg(F.min(F.struct("open_since", "file", "open_position")).alias("first"))
        .select("partition", "producer_id", "first.*")
        .withColumnRenamed("open_position", "position")
    )
    age_ms = f"({facts.options.as_of_ms} - open_since)"
    message = joined(
        "producer ",
        Sql("producer_id"),
        " has had a transaction open for ",
        Sql(f"{age_ms} div 1000"),
        " s",
    )
    return by_partition(rows.where(f"{age_ms} > {facts.options.limits.transaction_max_timeout_ms}"), message)


CHECK = Check(
    name="transaction_open_too_long",
    severity="warning",
    about="A transaction is open for longer than transaction.max.timeout.ms: its group's offsets wait for it.",
    find=_find,
)
