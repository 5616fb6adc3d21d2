# SPDX-License-Identifier: Apache-2.0
"""The tables of Facts, planned from the partial summaries of a log that may still be unread."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from audit.facts.inventory import LogInventory
from audit.facts.log_facts import Facts, RunSummary
from audit.facts.state import apply_transaction_markers, merge_groups, merge_offsets
from audit.fold import FoldParameters
from audit.options import AuditOptions


def build_fold_parameters(options: AuditOptions, inventory: LogInventory) -> FoldParameters:
    """Return the rules that the reading tasks need."""
    limits = options.limits
    return FoldParameters(
        now_ms=options.as_of_ms,
        cleaned_to=inventory.cleaned_to,
        num_partitions=inventory.infer_partition_count(options.num_partitions),
        metadata_bytes_max=limits.offset_metadata_max_bytes,
        future_ms=limits.future_ms,
        clock_back_ms=limits.clock_back_ms,
        since_ms=options.since_ms,
        chunk_rows=options.cutting.chunk_rows,
    )


def summarize_sightings_by_file(sightings: DataFrame) -> DataFrame:
    """Return one row for each check and file: the number of its sightings, and the place and message of the first."""
    return sightings.sparkSession.sql(
        """
        select check, partition, file, first.position, first.at_offset, count, first.message from (
            select check, partition, file, sum(count) as count,
                min(struct(at_position as position, at_offset, detail as message)) as first
            from {sightings} group by check, partition, file
        )
        """,
        sightings=sightings,
    )


def with_previous_range(ranges: DataFrame) -> DataFrame:
    """Return every range, with its `number` in its partition and the end of the ranges before it.

    The end is null for the first range of a partition, and behind damage.
    """
    return ranges.sparkSession.sql(
        """
        select *,
            row_number() over in_order as number,
            lag(next_offset) over in_order as expected_offset,
            lag(first_base_offset) over in_order as earlier_base_offset,
            lag(last_max_timestamp) over in_order as earlier_timestamp,
            max(max_epoch) over earlier as earlier_epoch,
            max(segment) over (partition by partition) as newest_segment
        from {ranges} window
            in_order as (partition by partition order by segment, position),
            earlier as (partition by partition order by segment, position
                rows between unbounded preceding and 1 preceding)
        """,
        ranges=ranges,
    )


def make_lazy_facts(
    options: AuditOptions,
    inventory: LogInventory,
    summary: DataFrame,
    previous_runs: Sequence[RunSummary],
    previous_offsets: DataFrame | None,
    spread: int,
) -> Facts:
    """Plan the tables from `summary`, the rows of `audit.fold`, over `spread` tasks.

    Nothing is read by this: Spark computes a table when it is first used.
    """
    keys = summary.where("kind in ('offset', 'group')")
    # Each partition of the log is in one task as a whole: so no query on a group needs a shuffle.
    keys = keys.coalesce(1) if spread == 1 else keys.repartition(spread, "partition")
    small = checkpoint_lazily(summary.where("kind not in ('offset', 'group')").coalesce(1))
    transactions = summaries_of_kind(small, "transaction")
    return Facts(
        options=options,
        inventory=inventory,
        folded=summary,
        spread=spread,
        ranges=checkpoint_lazily(with_previous_range(summaries_of_kind(small, "range"))),
        sightings=checkpoint_lazily(summarize_sightings_by_file(summaries_of_kind(small, "sighting"))),
        hours=summaries_of_kind(small, "hour"),
        rebalances=summaries_of_kind(small, "rebalances"),
        arrivals=summaries_of_kind(small, "arrivals"),
        transactions=transactions,
        other_groups=summaries_of_kind(small, "other").select("partition", "group").distinct(),
        offsets=checkpoint_lazily(
            merge_offsets(apply_transaction_markers(summaries_of_kind(keys, "offset"), transactions))
        ),
        groups=checkpoint_lazily(merge_groups(summaries_of_kind(keys, "group"))),
        previous_runs=previous_runs,
        previous_offsets=previous_offsets,
    )


def summaries_of_kind(summary: DataFrame, kind: str) -> DataFrame:
    """Return the partial summaries of one kind: the columns of their place, and the columns of the kind."""
    return summary.where(f"kind = '{kind}'").selectExpr(
        "partition", "file", "segment", "position", f"{kind}.*"
    )


def checkpoint_lazily(table: DataFrame) -> DataFrame:
    """Return the table, to be computed once, when it is first used; its source is no part of later plans.

    Plans over a cached table would still hold everything below it, and there are dozens of them.
    """
    return table.localCheckpoint(eager=False)
