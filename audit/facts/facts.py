# SPDX-License-Identifier: Apache-2.0
"""Everything that a check may ask: small tables, made from the log in one pass."""

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.facts.inventory import Inventory
from audit.options import AuditOptions


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says; each table is small beside it.

    `offsets` and `groups` have one row for each key, `live_offsets` and `live_groups` those that are not deleted.
    `ranges`, `hours`, `rebalances`, `arrivals` and `transactions` are partial summaries as `audit.fold.partials` has
    them, `sightings` those of each check and file together, `other_groups` the groups of protocols of which only
    their names are read. `differences` are those to a running cluster (`audit.compared.against`) and to the log once
    compacted (`audit.compared.compaction`), None when neither was asked for.
    `misplaced` are the partitions with groups that belong to others (`audit.facts.misplaced`), None without any.
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
    misplaced: DataFrame | None = None
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
