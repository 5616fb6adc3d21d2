# SPDX-License-Identifier: Apache-2.0
"""Keys that compaction left twice."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.checks.ranges import lookup
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    names = ("partition", "group", "file", "last_position", "cleaned")
    keys = facts.offsets.select(*names).unionByName(facts.groups.select(*names))
    rows = (
        keys.where("cleaned > 1")
        .withColumn("cleaned_to", lookup(facts.inventory.cleaner_checkpoint))
        .where("cleaned_to is not null")
        .withColumnRenamed("last_position", "position")
    )
    message = joined(
        "group ", quoted("group"), " has a key ", Sql("cleaned"), " times below the cleaner's checkpoint"
    )
    return by_partition(rows, message)


CHECK = Check(
    name="compaction_duplicate",
    severity="error",
    about="A key is in the compacted part more than once: compaction says that it was there, and was not.",
    find=_find,
)
