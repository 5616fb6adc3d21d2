# SPDX-License-Identifier: Apache-2.0
"""The audit's own tables: Parquet, by date and run, so that trends can be asked of them, and the next audit.

`<out>/tables/<name>/date=2026-11-21/run=030000/`. The table `runs` is written last: a run that is not in it did not
come to its end, and nobody looks at its rows.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from audit.facts import Facts, RunFacts

DIRECTORY: Final = "tables"
RUNS: Final = "runs"
OFFSETS: Final = "offsets"
_TYPES: Final = {int: "long", str: "string", float: "double"}
RUNS_SCHEMA: Final = ", ".join(
    f"{field.name} {_TYPES[field.type]}" for field in msgspec.structs.fields(RunFacts)
)


def tables(facts: Facts, found: DataFrame) -> dict[str, DataFrame]:
    """All tables but `runs`, by name."""
    records = facts.ranges.groupBy("partition", "file").agg(
        *(
            F.sum(name).alias(name)
            for name in (
                "bytes", "batches", "records", "commits", "group_records", "markers", "others", "tombstones"
            )
        ),
        F.min("oldest_timestamp").alias("oldest_timestamp"),
        F.max("newest_timestamp").alias("newest_timestamp"),
        F.max("next_offset").alias("next_offset"),
    )  # fmt: skip
    hours = facts.hours.groupBy("partition", "hour_ms").agg(
        *(F.sum(name).alias(name) for name in ("records", "commits", "group_records"))
    )
    groups = facts.live_groups.withColumn("members", F.size("members")).drop("back", "tombstone")
    offsets = facts.live_offsets.drop("back", "tombstone")
    return {"records": records, "hours": hours, "findings": found, "groups": groups, OFFSETS: offsets}


def write(name: str, table: DataFrame, out: Path, as_of_ms: int) -> None:
    """Write a table of this run; what the same run wrote before is replaced."""
    moment = datetime.fromtimestamp(as_of_ms / 1000, UTC)
    (
        table.withColumn("date", F.lit(f"{moment:%Y-%m-%d}"))
        .withColumn("run", F.lit(f"{moment:%H%M%S}"))
        .coalesce(2)
        .write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .partitionBy("date", "run")
        .parquet(str(out / DIRECTORY / name))
    )


def write_run(spark: SparkSession, run: RunFacts, out: Path) -> None:
    """Write the table `runs`: from now on this run counts."""
    row = msgspec.structs.astuple(run)
    write(RUNS, spark.createDataFrame([row], RUNS_SCHEMA), out, run.as_of_ms)


def earlier_runs(spark: SparkSession, out: Path, log_dirs: str, as_of_ms: int) -> list[RunFacts]:
    """What earlier audits of the same directories said of themselves, oldest first."""
    path = out / DIRECTORY / RUNS
    if not path.exists():
        return []
    names = [field.name for field in msgspec.structs.fields(RunFacts)]
    table = spark.read.schema(f"{RUNS_SCHEMA}, date string, run string").parquet(str(path))
    rows = table.where((F.col("log_dirs") == log_dirs) & (F.col("as_of_ms") < as_of_ms)).orderBy("as_of_ms")
    return [RunFacts(**{name: row[name] for name in names}) for row in rows.collect()]


def offsets_of(spark: SparkSession, out: Path, run: RunFacts) -> DataFrame | None:
    """The state that an earlier run found; None when somebody has deleted that."""
    moment = datetime.fromtimestamp(run.as_of_ms / 1000, UTC)
    path = out / DIRECTORY / OFFSETS / f"date={moment:%Y-%m-%d}" / f"run={moment:%H%M%S}"
    return spark.read.parquet(str(path)) if path.exists() else None


def described() -> Mapping[str, str]:
    """What each table holds, for people."""
    return {
        "records": "one row for each file: batches, records by kind, bytes, times",
        "hours": "records and commits by partition and hour",
        "findings": "what the checks found",
        "groups": "each stored group: its newest record",
        OFFSETS: "each committed offset: its newest record",
        RUNS: "one row for each audit",
    }
