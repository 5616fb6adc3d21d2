# SPDX-License-Identifier: Apache-2.0
"""Groups that rebalance again and again."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    hours = facts.rebalances.groupBy("partition", "group", "hour_ms").agg(
        F.sum("count").alias("rebalances"), F.min(F.struct("file", "position")).alias("at")
    )
    worst = (
        hours.where(F.col("rebalances") > facts.options.limits.rebalances_per_hour)
        .groupBy("partition", "group")
        .agg(F.max(F.struct("rebalances", "hour_ms", "at")).alias("worst"))
        .select("partition", "group", "worst.rebalances", "worst.at.*")
    )
    message = joined("group ", quoted("group"), " had ", Sql("rebalances"), " generations within an hour")
    return by_partition(worst, message)


CHECK = Check(
    name="rebalance_storm",
    severity="warning",
    about="A group goes through generation after generation: its members spend their time on rebalancing.",
    find=_find,
)
