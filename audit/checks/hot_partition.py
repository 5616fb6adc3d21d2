# SPDX-License-Identifier: Apache-2.0
"""One partition that gets far more than the others."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from audit.checks.base import Check
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    limits = facts.options.limits
    logs = facts.ranges.groupBy("partition").agg(
        F.sum("records").alias("records"), F.min(F.struct("segment", "file")).alias("first")
    )
    mean = F.col("total") / len(facts.inventory.partitions)
    hot = (F.col("records") >= limits.hot_partition_records) & (
        F.col("records") > limits.hot_partition_factor * mean
    )
    return (
        logs.withColumn("total", F.sum("records").over(Window.partitionBy()))
        .where(hot)
        .select(
            "partition",
            "first.file",
            F.lit(0).cast("long").alias("position"),
            F.lit(1).cast("long").alias("count"),
            F.format_string("%d of all %d records are in this partition", "records", "total").alias(
                "message"
            ),
        )
    )


CHECK = Check(
    name="hot_partition",
    severity="warning",
    about="One partition has many times the records of the others, so its coordinator has most of the work.",
    find=_find,
)
