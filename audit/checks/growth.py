# SPDX-License-Identifier: Apache-2.0
"""Growth since the last audit."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, nothing
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    if not facts.previous_runs:
        return nothing(facts)
    before, limits = facts.previous_runs[-1], facts.options.limits
    total = facts.ranges.agg(F.sum("bytes").alias("bytes"))
    grown = F.col("bytes") - before.bytes
    much = (grown > limits.growth_bytes) & (F.col("bytes") > limits.growth_factor * before.bytes)
    return total.where(much).select(
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("string").alias("file"),
        F.lit(None).cast("long").alias("position"),
        F.lit(1).cast("long").alias("count"),
        F.format_string("the log has %d bytes; the last audit found %d", "bytes", F.lit(before.bytes)).alias(
            "message"
        ),
    )


CHECK = Check(
    name="growth",
    severity="warning",
    about="The log has grown much since the last audit: compaction or expiry does not keep up, or a client runs wild.",
    find=_find,
)
