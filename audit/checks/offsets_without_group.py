# SPDX-License-Identifier: Apache-2.0
"""Offsets of groups that are not stored."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.checks.owners import owned_offsets
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    groups = (
        owned_offsets(facts)
        .where("state is null")
        .groupBy("partition", "group")
        .agg(F.min(F.struct("file", "position")).alias("at"), F.count("*").alias("offsets"))
        .select("partition", "at.*", "group", "offsets")
    )
    message = joined("group ", quoted("group"), " has ", Sql("offsets"), " offsets, and is not stored itself")
    return by_partition(groups, message)


CHECK = Check(
    name="offsets_without_group",
    severity="info",
    about="Offsets belong to no stored group: somebody commits without joining, or the group is gone.",
    find=_find,
)
