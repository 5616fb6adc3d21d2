# SPDX-License-Identifier: Apache-2.0
"""All tables that a check may use: small ones, made from the log in one pass."""

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.facts.inventory import LogInventory
from audit.options import AuditOptions


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the log as tables that are small in comparison.

    `offsets` and `groups` have one row for each key, `live_offsets` and `live_groups` those that are not deleted.
    `ranges`, `hours`, `rebalances`, `arrivals` and `transactions` are partial summaries as `audit.fold.partials`
    defines them; each row of `ranges` also has the end of the range before it. `sightings` are those of each check and
    file together. `other_groups` are the groups of protocols of which only the names are read. `differences` are those
    to a running cluster (`audit.compared.cluster_comparison`) and to the log once compacted
    (`audit.compared.compaction_comparison`), or None if neither was requested. `misplaced` are the partitions with
    groups that belong to others (`audit.facts.misplaced`), or None without any. `previous_offsets` is the state of the
    last audit, if there was one, and `previous_runs` the summaries of earlier audits, oldest first. `spread` is the
    number of tasks for the larger tables.
    """

    options: AuditOptions
    inventory: LogInventory
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
    misplaced: DataFrame | None = None
    previous_offsets: DataFrame | None = None
    previous_runs: Sequence["RunSummary"] = ()

    @property
    def spark(self) -> SparkSession:
        """The Spark session of all tables."""
        return self.folded.sparkSession

    @property
    def live_offsets(self) -> DataFrame:
        """The offsets that are not deleted."""
        return self.offsets.where("not tombstone")

    @property
    def live_groups(self) -> DataFrame:
        """The stored groups that are not deleted."""
        return self.groups.where("not tombstone")

    def register_tables(self) -> None:
        """Register each table in the session's SQL under its field's name, in place of the tables of other facts."""
        names = [field.name for field in msgspec.structs.fields(self)]
        for name in [*names, "live_offsets", "live_groups"]:
            table = getattr(self, name)
            if isinstance(table, DataFrame):
                table.createOrReplaceTempView(name)


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of an audit in one row; times are milliseconds since the epoch, `log_dirs` is comma-separated."""

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
