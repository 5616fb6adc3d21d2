# SPDX-License-Identifier: Apache-2.0
"""Members that come and go."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    limit = facts.options.limits.arrivals_per_hour
    rows = (
        facts.arrivals.groupBy("partition", "group", "who", "hour_ms")
        .agg(
            F.sum("arrivals").alias("arrivals"),
            F.max("together").alias("together"),
            F.min(F.struct("file", "position")).alias("at"),
        )
        .where(F.col("arrivals") > limit * F.col("together"))
        .select("partition", "group", "who", "arrivals", "at.*")
    )
    message = joined(
        "in group ", quoted("group"), " ", quoted("who"), " came ", Sql("arrivals"), " times within an hour"
    )
    return by_partition(rows, message)


CHECK = Check(
    name="members_flapping",
    severity="warning",
    about="A member joins under a new id again and again: it crashes, or is too slow for its session timeout.",
    find=_find,
)
