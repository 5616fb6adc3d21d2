# SPDX-License-Identifier: Apache-2.0
"""Everything that a check may ask: small tables, made from the log in one pass."""

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from audit.fold import FoldRules
from audit.inventory import Inventory
from audit.options import AuditOptions
from audit.source import folded
from audit.state import groups_state, of_kind, offsets_state, resolved


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says; each table is small beside it.

    `offsets` and `groups` have one row for each key, `live_offsets` and `live_groups` those that are not deleted.
    `ranges`, `hours`, `rebalances`, `arrivals` and `transactions` are partial summaries as `audit.fold.partials` has
    them, `sightings` those of each check and file together, `other_groups` the groups of protocols of which only
    their names are read. `differences` are those to a running cluster (`audit.against`), None when none was asked.
    `previous_offsets` is the last audit's state, if there was one, `previous_runs` what earlier audits said of
    themselves, oldest first.
    """

    options: AuditOptions
    inventory: Inventory
    folded: DataFrame
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
    first = F.expr("min(struct(at_position as position, at_offset, detail as message))").alias("first")
    merged = sightings.groupBy("check", "partition", "file").agg(F.expr("sum(count)").alias("count"), first)
    return merged.selectExpr(
        "check", "partition", "file", "first.position", "first.at_offset", "count", "first.message"
    )


def gather(spark: SparkSession, options: AuditOptions, inventory: Inventory) -> Facts:
    """Plan the one pass over the log, and the tables that come of it; nothing is read before somebody asks."""
    rules = msgspec.json.encode(fold_rules(options, inventory)).decode()
    summary = _kept(folded(spark, options.log_dirs, "summary", rules))

    def small(kind: str) -> DataFrame:
        # One partition: then nothing that is asked of it needs a shuffle, which costs more than these few rows.
        return of_kind(summary, kind).coalesce(1)

    transactions = _kept(small("transaction"))
    offsets = resolved(of_kind(summary, "offset"), transactions)
    return Facts(
        options=options,
        inventory=inventory,
        folded=summary,
        ranges=_kept(small("range")),
        sightings=_kept(sightings_by_file(small("sighting"))),
        hours=_kept(small("hour")),
        rebalances=_kept(small("rebalances")),
        arrivals=_kept(small("arrivals")),
        transactions=transactions,
        other_groups=_kept(small("other").select("partition", "group").distinct()),
        offsets=_kept(offsets_state(offsets)),
        groups=_kept(groups_state(of_kind(summary, "group"))),
    )


def _kept(table: DataFrame) -> DataFrame:
    """The table, computed once, when it is first asked for; what it comes of is no part of later plans.

    Plans over a cached table would still hold everything below it, and there are dozens of them.
    """
    return table.localCheckpoint(eager=False)
