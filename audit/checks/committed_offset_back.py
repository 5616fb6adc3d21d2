# SPDX-License-Identifier: Apache-2.0
"""Committed offsets that went back."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    rows = facts.offsets.where("backwards > 0").withColumns(
        {"file": F.col("back.file"), "position": F.col("back.position")}
    )
    message = joined(
        "group ", quoted("group"), " committed less for ", Sql("topic"), "-", Sql("topic_partition"), ": ",
        Sql("back.detail"),
    )  # fmt: skip
    return by_partition(rows, message, count="backwards")


CHECK = Check(
    name="committed_offset_back",
    severity="warning",
    about="A group committed a lower offset than before: it was reset on purpose, or it reads records again.",
    find=_find,
)
