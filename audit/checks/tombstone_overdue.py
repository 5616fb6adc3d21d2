# SPDX-License-Identifier: Apache-2.0
"""Tombstones that compaction could have dropped."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, by_partition, joined, quoted
from audit.checks.ranges import lookup
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    # The first compaction starts the time of delete.retention.ms, and only a later one can drop the tombstone.
    limits = facts.options.limits
    oldest = facts.options.as_of_ms - 2 * limits.delete_retention_ms - limits.compaction_grace_ms
    names = ("partition", "group", "file", "last_position", "log_offset", "timestamp")
    tombstones = facts.offsets.where("tombstone").select(*names)
    tombstones = tombstones.unionByName(facts.groups.where("tombstone").select(*names))
    rows = (
        tombstones.where(F.col("timestamp") <= oldest)
        .withColumn("cleaned_to", lookup(facts.inventory.cleaner_checkpoint))
        .where("log_offset < cleaned_to")
        .withColumnRenamed("last_position", "position")
    )
    return by_partition(
        rows, joined("a tombstone of group ", quoted("group"), " is past delete.retention.ms")
    )


CHECK = Check(
    name="tombstone_overdue",
    severity="info",
    about="Compacted tombstones are older than delete.retention.ms: they go when the log is compacted again.",
    find=_find,
)
