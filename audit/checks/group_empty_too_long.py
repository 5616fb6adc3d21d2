# SPDX-License-Identifier: Apache-2.0
"""Groups that have been empty for longer than their offsets are kept."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.checks.owners import retention_over
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    kept = facts.live_offsets.where(F.col("expire_timestamp") > facts.options.as_of_ms).select(
        "partition", "group"
    )
    rows = (
        facts.live_groups.where("state = 'Empty' and state_timestamp >= 0")
        .where(F.col("state_timestamp") <= retention_over(facts))
        .join(kept, ["partition", "group"], "left_anti")
        .withColumnRenamed("last_position", "position")
    )
    hours = Sql(f"({facts.options.as_of_ms} - state_timestamp) div 3600000")
    return by_partition(rows, joined("group ", quoted("group"), " has been empty for ", hours, " hours"))


CHECK = Check(
    name="group_empty_too_long",
    severity="warning",
    about="A group has had no member for longer than offsets.retention.minutes, and is still there.",
    find=_find,
)
