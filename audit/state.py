# SPDX-License-Identifier: Apache-2.0
"""The state that the log says, merged from partial summaries: the newest value of every key.

Offsets of a transaction count once its marker says commit, from their own place in the log on
(OffsetMetadataManager.replayEndTransactionMarker keeps the record with the higher offset); never if it says abort.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

KEY: Final = ("partition", "group", "topic", "topic_partition")
GROUP_KEY: Final = ("partition", "group")
NEWEST_OFFSET: Final = (
    "log_offset", "file", "last_position", "committed_offset", "leader_epoch", "metadata", "commit_timestamp",
    "expire_timestamp", "timestamp", "tombstone",
)  # fmt: skip
NEWEST_GROUP: Final = (
    "log_offset", "file", "last_position", "generation", "protocol_type", "protocol", "leader", "state_timestamp",
    "members", "timestamp", "tombstone",
)  # fmt: skip
_PLACE: Final = ("segment", "position")


def of_kind(folded: DataFrame, kind: str) -> DataFrame:
    """The partial summaries of one kind, its columns beside those of the place."""
    place = ("partition", "file", *_PLACE)
    return folded.where(F.col("kind") == kind).select(*place, f"{kind}.*")


def resolved(offsets: DataFrame, transactions: DataFrame) -> DataFrame:
    """The partial offsets that count: those outside of transactions, and those whose next marker says commit."""
    pending = offsets.where(F.col("pending_of").isNotNull())
    markers = transactions.where("has_marker").select(
        "partition",
        F.col("producer_id").alias("pending_of"),
        F.struct(*_PLACE).alias("marked_at"),
        "first_marker",
    )
    ended = (
        pending.withColumn("at", F.struct(*_PLACE))
        .join(markers, ["partition", "pending_of"])
        .where("marked_at > at")
        .groupBy(*KEY, "pending_of", "at")
        .agg(
            F.min_by("first_marker", "marked_at").alias("marker"),
            F.first(F.struct(*offsets.columns)).alias("it"),
        )
    )
    committed = ended.where("marker = 'commit'").select("it.*")
    return offsets.where(F.col("pending_of").isNull()).unionByName(committed)


def offsets_state(partials: DataFrame) -> DataFrame:
    """One row for each key of the log: its newest record, and what is to be said of those before."""
    before = Window.partitionBy(*KEY).orderBy(*_PLACE)
    went_back = F.lag("committed_offset").over(before) > F.col("first_committed")
    seen = partials.withColumn(
        "back_between", F.coalesce(went_back & ~F.lag("tombstone").over(before), F.lit(False))
    )
    return _merged(seen, KEY, NEWEST_OFFSET)


def groups_state(partials: DataFrame) -> DataFrame:
    """One row for each group that the log has a record of."""
    before = Window.partitionBy(*GROUP_KEY).orderBy(*_PLACE)
    earlier, first = F.lag("generation").over(before), F.col("first_generation")
    both = ~F.lag("tombstone").over(before) & first.isNotNull()
    seen = partials.withColumns(
        {
            "back_between": F.coalesce((earlier > first) & both, F.lit(False)),
            "rebalanced_between": F.coalesce((earlier < first) & both, F.lit(False)),
        }
    )
    rebalances = F.expr("sum(rebalances + cast(rebalanced_between as int))").alias("rebalances")
    merged = _merged(seen, GROUP_KEY, NEWEST_GROUP, rebalances)
    return merged.withColumn("state", F.when(F.size("members") > 0, "Stable").otherwise("Empty"))


def _merged(partials: DataFrame, key: tuple[str, ...], newest: tuple[str, ...], *more: Column) -> DataFrame:
    back_here = F.when(
        F.col("backwards") > 0,
        F.struct(
            F.col("segment"),
            F.col("file"),
            F.col("back_position").alias("position"),
            F.col("back_detail").alias("detail"),
        ),
    )
    back_there = F.when(
        F.col("back_between"),
        F.struct(
            F.col("segment"),
            F.col("file"),
            F.col("first_position").alias("position"),
            F.lit("less than before").alias("detail"),
        ),
    )
    merged = partials.groupBy(*key).agg(
        # The last in the log, as whoever loads it sees it; by offset where a range has it in a transaction as well.
        F.max_by(F.struct(*newest), F.struct(*_PLACE, "log_offset")).alias("newest"),
        F.sum("count").alias("records"),
        F.sum("tombstones").alias("tombstones"),
        F.sum("cleaned").alias("cleaned"),
        F.sum(F.col("backwards") + F.col("back_between").cast("int")).alias("backwards"),
        F.min(F.coalesce(back_there, back_here)).alias("back"),
        *more,
    )
    kept = [name for name in merged.columns if name not in ("newest", *key)]
    return merged.select(*key, "newest.*", *kept)
