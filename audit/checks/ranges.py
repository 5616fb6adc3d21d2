# SPDX-License-Identifier: Apache-2.0
"""Ranges beside the one before them: what no task that reads a single range can see."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from audit.facts import Facts


def neighbours(facts: Facts) -> DataFrame:
    """Every range, with what the one before it ended with: null for the first of a partition, and behind damage."""
    in_order = Window.partitionBy("partition").orderBy("segment", "position")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    return facts.ranges.select(
        "partition",
        "file",
        "position",
        "segment",
        "first_base_offset",
        "first_epoch",
        "first_max_timestamp",
        F.row_number().over(in_order).alias("number"),
        F.lag("next_offset").over(in_order).alias("expected_offset"),
        F.lag("first_base_offset").over(in_order).alias("earlier_base_offset"),
        F.max("max_epoch").over(earlier).alias("earlier_epoch"),
        F.lag("last_max_timestamp").over(in_order).alias("earlier_timestamp"),
    )


def between(facts: Facts, condition: str, *message: str) -> DataFrame:
    """The ranges for which this holds, as findings; `message` is SQL, piece by piece."""
    text = F.concat(*(F.expr(piece).cast("string") for piece in message))
    return (
        neighbours(facts)
        .where(condition)
        .select("partition", "file", "position", F.lit(1).cast("long").alias("count"), text.alias("message"))
    )


def lookup(values: Mapping[int, int]) -> Column:
    """The value for the row's `partition`; null for one that is not among them."""
    pairs = ", ".join(f"{partition}, {value}L" for partition, value in values.items())
    return F.expr(f"element_at(map({pairs}), partition)") if values else F.lit(None).cast("long")
