# SPDX-License-Identifier: Apache-2.0
"""Logs that should have been compacted."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from audit.checks.base import Check, nothing
from audit.checks.ranges import lookup
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    if not facts.inventory.has_checkpoint:
        return nothing(facts)  # a copy without the cleaner's notes does not tell
    limits = facts.options.limits
    noted = lookup(facts.inventory.cleaner_checkpoint)
    newest = Window.partitionBy("partition")
    closed = (
        facts.ranges.withColumn("newest_segment", F.max("segment").over(newest))
        .where("segment < newest_segment")
        .withColumn("dirty", F.col("segment") >= F.coalesce(noted, F.lit(0)))
    )
    logs = closed.groupBy("partition").agg(
        F.sum("bytes").alias("bytes"),
        F.sum(F.when(F.col("dirty"), F.col("bytes")).otherwise(0)).alias("dirty_bytes"),
        F.max(F.when(F.col("dirty"), F.col("newest_timestamp"))).alias("newest"),
        F.min(F.when(F.col("dirty"), F.struct("segment", "file"))).alias("first"),
    )
    ratio = F.col("dirty_bytes") / F.col("bytes")
    overdue = (ratio > limits.min_cleanable_dirty_ratio) & (
        F.col("newest") <= facts.options.as_of_ms - limits.compaction_grace_ms
    )
    return logs.where(overdue).select(
        "partition",
        "first.file",
        F.lit(0).cast("long").alias("position"),
        F.lit(1).cast("long").alias("count"),
        F.format_string(
            "%d of %d bytes in closed segments have not been compacted", "dirty_bytes", "bytes"
        ).alias("message"),
    )


CHECK = Check(
    name="compaction_overdue",
    severity="warning",
    about="More of a log waits for compaction than min.cleanable.dirty.ratio allows: the cleaner does not run.",
    find=_find,
)
