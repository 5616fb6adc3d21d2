# SPDX-License-Identifier: Apache-2.0
"""Everything that a check may ask: small tables, made from the log in one pass."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.fold import FoldRules
from audit.inventory import Inventory
from audit.options import AuditOptions
from audit.source import folded
from audit.state import groups_state, offsets_state, resolved

ROWS_TOGETHER: Final = 500_000
"""Up to so many partial summaries are merged in one task."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says; each table is small beside it.

    `offsets` and `groups` have one row for each key, `live_offsets` and `live_groups` those that are not deleted.
    `ranges`, `hours`, `rebalances`, `arrivals` and `transactions` are partial summaries as `audit.fold.partials` has
    them, `sightings` those of each check and file together, `other_groups` the groups of protocols of which only
    their names are read. `differences` are those to a running cluster (`audit.against`) and to the log once compacted
    (`audit.compaction`), None when neither was asked for.
    `previous_offsets` is the last audit's state, if there was one, `previous_runs` what earlier audits said of
    themselves, oldest first.
    `spread` is over how many tasks the larger tables are spread. `ranges` has beside each range what the one before
    it ended with.
    """

    options: AuditOptions
    inventory: Inventory
    folded: DataFrame
    spread: int
    ranges: DataFrame
    sightings: DataFrame
    hours: DataFrame
    rebalances: DataFrame
    arrivals: DataFrame
    transactions: DataFrame
    other_groups: DataFrame
    offsets: DataFrame
    groups: DataFrame
    differences: DataFrame | None = None
    previous_offsets: DataFrame | None = None
    previous_runs: Sequence["RunFacts"] = ()

    @property
    def spark(self) -> SparkSession:
        """The session that all of this is in."""
        return self.folded.sparkSession

    @property
    def live_offsets(self) -> DataFrame:
        """The offsets that are there."""
        return self.offsets.where("not tombstone")

    @property
    def live_groups(self) -> DataFrame:
        """The stored groups that are there."""
        return self.groups.where("not tombstone")

    def name_tables(self) -> None:
        """Let SQL of the session find the tables by their names here; those of other facts lose these names."""
        names = [field.name for field in msgspec.structs.fields(self)]
        for name in [*names, "live_offsets", "live_groups"]:
            table = getattr(self, name)
            if isinstance(table, DataFrame):
                table.createOrReplaceTempView(name)


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An audit in one line; times are milliseconds since the epoch. `log_dirs` has commas between them."""

    log_dirs: str
    as_of_ms: int
    partitions: int
    records: int
    bytes: int
    groups: int
    offsets: int
    findings: int
    errors: int
    warnings: int
    infos: int
    seconds: float


def fold_rules(options: AuditOptions, inventory: Inventory) -> FoldRules:
    """What the reading tasks need to know."""
    limits = options.limits
    return FoldRules(
        now_ms=options.as_of_ms,
        cleaned_to=inventory.cleaned_to,
        num_partitions=inventory.num_partitions(options.num_partitions),
        metadata_bytes_max=limits.offset_metadata_max_bytes,
        future_ms=limits.future_ms,
        clock_back_ms=limits.clock_back_ms,
        since_ms=options.since_ms,
    )


def sightings_by_file(sightings: DataFrame) -> DataFrame:
    """check, partition, file, position, at_offset, count, message: for each check and file, of the first."""
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


def beside_neighbours(ranges: DataFrame) -> DataFrame:
    """Every range, with its `number` in its partition and what those before it ended with.

    That is null for the first of a partition, and behind damage.
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


class Reading:
    """A log that is being read, once; its facts can be asked about already, and their queries planned meanwhile.

    Planning takes Java seconds, and the readers are other processes.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: AuditOptions,
        inventory: Inventory,
        previous_runs: Sequence[RunFacts] = (),
        previous_offsets: DataFrame | None = None,
    ) -> None:
        rules = msgspec.json.encode(fold_rules(options, inventory)).decode()
        summary = _kept(folded(spark, options.log_dirs, "summary", rules))
        _compile_queries(spark, False)
        self._thread = ThreadPoolExecutor(1)
        self._rows = self._thread.submit(_read, summary)
        self._plan = partial(_planned, options, inventory, summary, previous_runs, previous_offsets)
        self.facts = self._plan(1)
        """Planned for a summary that one task can hold, as it seldom is larger."""

    def finish(self) -> Facts:
        """Wait for the end; returns `facts`, or others that more tasks make, from a large log."""
        spread = 1 + self._rows.result() // ROWS_TOGETHER
        self._thread.shutdown()
        if spread > 1:
            _compile_queries(self.facts.spark, True)
            return self._plan(spread)
        return self.facts


def gather(spark: SparkSession, options: AuditOptions, inventory: Inventory) -> Facts:
    """Read the log, and plan the tables that come of it."""
    return Reading(spark, options, inventory).finish()


def _read(summary: DataFrame) -> int:
    """Read the log; returns how many partial summaries came of it."""
    # A query for the count would need a shuffle, and all that Java has to get ready for one.
    rows: int = summary._jdf.queryExecution().toRdd().count()
    return rows


def _planned(
    options: AuditOptions,
    inventory: Inventory,
    summary: DataFrame,
    previous_runs: Sequence[RunFacts],
    previous_offsets: DataFrame | None,
    spread: int,
) -> Facts:
    """The tables of a summary, which need not have been read yet."""
    keys = summary.where("kind in ('offset', 'group')")
    # Each partition of the log goes to one task as a whole: then nothing that is asked of a group needs a shuffle.
    keys = keys.coalesce(1) if spread == 1 else keys.repartition(spread, "partition")
    small = _kept(summary.where("kind not in ('offset', 'group')").coalesce(1))
    transactions = of_kind(small, "transaction")
    return Facts(
        options=options,
        inventory=inventory,
        folded=summary,
        spread=spread,
        ranges=_kept(beside_neighbours(of_kind(small, "range"))),
        sightings=_kept(sightings_by_file(of_kind(small, "sighting"))),
        hours=of_kind(small, "hour"),
        rebalances=of_kind(small, "rebalances"),
        arrivals=of_kind(small, "arrivals"),
        transactions=transactions,
        other_groups=of_kind(small, "other").select("partition", "group").distinct(),
        offsets=_kept(offsets_state(resolved(of_kind(keys, "offset"), transactions))),
        groups=_kept(groups_state(of_kind(keys, "group"))),
        previous_runs=previous_runs,
        previous_offsets=previous_offsets,
    )


def _compile_queries(spark: SparkSession, worth_it: bool) -> None:
    """For dozens of queries over small tables it takes longer to compile code than to do without."""
    spark.conf.set("spark.sql.codegen.wholeStage", worth_it)
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if worth_it else "NO_CODEGEN")


def of_kind(summary: DataFrame, kind: str) -> DataFrame:
    """The partial summaries of one kind, its columns beside those of the place."""
    return summary.where(f"kind = '{kind}'").selectExpr(
        "partition", "file", "segment", "position", f"{kind}.*"
    )


def _kept(table: DataFrame) -> DataFrame:
    """The table, computed once, when it is first asked for; what it comes of is no part of later plans.

    Plans over a cached table would still hold everything below it, and there are dozens of them.
    """
    return table.localCheckpoint(eager=False)
