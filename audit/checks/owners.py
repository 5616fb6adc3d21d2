# SPDX-License-Identifier: Apache-2.0
"""Offsets beside the groups that they are of."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.facts import Facts


def owned_offsets(facts: Facts) -> DataFrame:
    """The offsets that are there, with their group's `state` (null: not stored), `protocol_type`, `state_timestamp`.

    Groups of other protocols than the classic one, of which this audit knows only the name, are left out.
    """
    groups = facts.live_groups.select("partition", "group", "state", "protocol_type", "state_timestamp")
    return (
        facts.live_offsets.withColumnRenamed("last_position", "position")
        .join(facts.other_groups, ["partition", "group"], "left_anti")
        .join(groups, ["partition", "group"], "left")
    )


def retention_over(facts: Facts) -> int:
    """The time (ms) before which everything must have expired, the next look for it being due as well."""
    limits = facts.options.limits
    return (
        facts.options.as_of_ms - limits.offsets_retention_ms - 2 * limits.offsets_retention_check_interval_ms
    )


def with_expiry(offsets: DataFrame) -> DataFrame:
    """Those that expire, with the time `counts_from`; as in Kafka (ClassicGroup.offsetExpirationCondition).

    A group with members keeps its offsets. (It loses those of topics that none of them reads, which is not looked at
    here: subscriptions are not among the columns.)
    """
    simple = F.col("state").isNull() | (F.coalesce("protocol_type", F.lit("")) == "")
    emptied = F.when(F.col("state_timestamp") >= 0, F.col("state_timestamp")).otherwise(
        F.col("commit_timestamp")
    )
    return offsets.where(simple | (F.col("state") == "Empty")).withColumn(
        "counts_from", F.when(simple, F.col("commit_timestamp")).otherwise(emptied)
    )
