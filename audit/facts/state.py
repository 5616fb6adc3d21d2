# SPDX-License-Identifier: Apache-2.0
"""The state in the log, merged from partial summaries: the newest value of every key.

Offsets of a transaction count once its marker is a commit, from their own place in the log on
(OffsetMetadataManager.replayEndTransactionMarker keeps the record with the higher offset); never if it is an abort.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

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


def apply_transaction_markers(offsets: DataFrame, transactions: DataFrame) -> DataFrame:
    """Return the partial offsets that count: those outside of transactions, and those whose next marker is a commit."""
    return offsets.sparkSession.sql(
        """
        select * from {offsets} where pending_of is null
        union all
        select it.* from (
            select min_by(first_marker, marked_at) as marker, first(it) as it from (
                select partition, pending_of, struct(segment, position) as at, struct(*) as it from {offsets}
                where pending_of is not null
            )
            join (
                select partition, producer_id as pending_of, struct(segment, position) as marked_at, first_marker
                from {transactions} where has_marker
            ) using (partition, pending_of)
            where marked_at > at
            group by it.partition, it.group, it.topic, it.topic_partition, pending_of, at
        )
        where marker = 'commit'
        """,
        offsets=offsets,
        transactions=transactions,
    )


def merge_offsets(partials: DataFrame) -> DataFrame:
    """Return one row for each key of the log: its newest record, and a summary of the records before it."""
    back = "lag(committed_offset) over before > first_committed and not lag(tombstone) over before"
    return _merged(partials, KEY, NEWEST_OFFSET, {"back_between": back})


def merge_groups(partials: DataFrame) -> DataFrame:
    """Return one row for each group that the log has a record of."""
    both = "not lag(tombstone) over before and first_generation is not null"
    between = {
        "back_between": f"lag(generation) over before > first_generation and {both}",
        "rebalanced_between": f"lag(generation) over before < first_generation and {both}",
    }
    rebalances = "sum(rebalances + cast(rebalanced_between as int)) as rebalances"
    merged = _merged(partials, GROUP_KEY, NEWEST_GROUP, between, rebalances)
    return merged.selectExpr("*", "if(size(members) > 0, 'Stable', 'Empty') as state")


def _merged(
    partials: DataFrame, key: Sequence[str], newest: Sequence[str], between: dict[str, str], *more: str
) -> DataFrame:
    """Merge the partial summaries of each key into one; `between` compares a range with the one before it."""
    keys = ", ".join(key)
    compared = ", ".join(f"coalesce({value}, false) as {name}" for name, value in between.items())
    sums = [
        # The last in the log, as a node that loads it sees it; by offset if a range has it in a transaction as well.
        f"max_by(struct({', '.join(newest)}), struct(segment, position, log_offset)) as newest",
        "sum(count) as records",
        "sum(tombstones) as tombstones",
        "sum(cleaned) as cleaned",
        "sum(backwards + cast(back_between as int)) as backwards",
        "min(if(back_between, struct(segment, file, first_position as position, 'less than before' as detail),"
        " if(backwards > 0, struct(segment, file, back_position as position, back_detail as detail), null)))"
        " as back",
        *more,
    ]
    return partials.sparkSession.sql(
        f"""
        select {keys}, newest.*, * except ({keys}, newest) from (
            select {keys}, {", ".join(sums)} from (
                select *, {compared} from {{partials}}
                window before as (partition by {keys} order by segment, position)
            )
            group by {keys}
        )
        """,
        partials=partials,
    )
