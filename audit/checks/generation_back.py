# SPDX-License-Identifier: Apache-2.0
"""Generations that went back."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    rows = facts.groups.where("backwards > 0").withColumns(
        {"file": F.col("back.file"), "position": F.col("back.position")}
    )
    return by_partition(rows, joined("group ", quoted("group"), ": ", Sql("back.detail")), count="backwards")


CHECK = Check(
    name="generation_back",
    severity="error",
    about="A group was stored with a lower generation than before, and had not been deleted between.",
    find=_find,
)
