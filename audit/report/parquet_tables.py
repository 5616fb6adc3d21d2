# SPDX-License-Identifier: Apache-2.0
"""The audit's own tables in Parquet, by date and run, for queries on trends, and for the next audit.

`<out>/tables/<name>/date=2026-11-21/run=030000/`. The table `runs` is written last: a run that is not in it did not
finish, and its rows are ignored. The files are written by pyarrow, in Spark's Python workers that run anyway: Spark's
own writer takes seconds to get ready.
"""

import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from audit.facts.log_facts import Facts, RunSummary
from audit.schema import arrow_schema

DIRECTORY: Final = "tables"
RUNS: Final = "runs"
OFFSETS: Final = "offsets"
ROW_GROUP: Final = 100_000
"""The number of rows that are written together."""
_TYPES: Final = {int: pa.int64(), str: pa.string(), float: pa.float64()}
RUNS_SCHEMA: Final = pa.schema(
    [(field.name, _TYPES[field.type]) for field in msgspec.structs.fields(RunSummary)]
)


def write_fact_tables(facts: Facts, out: Path) -> None:
    """Write all tables except `findings` and `runs`; the facts' tables must be registered in SQL."""
    for name, table in _tables(facts).items():
        write_parquet_table(name, table, out, facts.options.as_of_ms)


def _tables(facts: Facts) -> dict[str, DataFrame]:
    sums = "bytes", "batches", "records", "commits", "group_records", "markers", "others", "tombstones"
    records = facts.spark.sql(
        f"""
        select partition, file, {", ".join(f"sum({name}) as {name}" for name in sums)},
            min(oldest_timestamp) as oldest_timestamp, max(newest_timestamp) as newest_timestamp,
            max(next_offset) as next_offset
        from ranges group by partition, file
        """
    )
    hours = facts.spark.sql(
        "select partition, hour_ms, sum(records) as records, sum(commits) as commits,"
        " sum(group_records) as group_records from hours group by partition, hour_ms"
    )
    groups = facts.spark.sql(
        "select * except (members, back, tombstone), size(members) as members from live_groups"
    )
    offsets = facts.spark.sql("select * except (back, tombstone) from live_offsets")
    return {"records": records, "hours": hours, "groups": groups, OFFSETS: offsets}


def write_parquet_table(name: str, table: DataFrame, out: Path, as_of_ms: int) -> None:
    """Write a table of this run; an earlier table of the same run is replaced."""
    place, schema = _emptied(name, out, as_of_ms), arrow_schema(table.schema)

    def save(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        rows = _save(place / f"part-{context.partitionId():05d}.parquet", batches, schema)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    table.mapInArrow(save, "rows long").collect()


def write_run_summary(run: RunSummary, out: Path) -> None:
    """Write the table `runs`: from now on this run counts."""
    row = pa.RecordBatch.from_pylist([msgspec.structs.asdict(run)], RUNS_SCHEMA)
    _save(_emptied(RUNS, out, run.as_of_ms) / "part-00000.parquet", [row], RUNS_SCHEMA)


def _place(name: str, out: Path, as_of_ms: int) -> Path:
    moment = datetime.fromtimestamp(as_of_ms / 1000, UTC)
    return out / DIRECTORY / name / f"date={moment:%Y-%m-%d}" / f"run={moment:%H%M%S}"


def _emptied(name: str, out: Path, as_of_ms: int) -> Path:
    place = _place(name, out, as_of_ms).absolute()
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    return place


def _save(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write a file, which appears once it is complete; return the number of its rows."""
    path.parent.mkdir(parents=True, exist_ok=True)  # it does not exist yet on another machine
    new = path.with_name(f".{path.name}.new")
    rows = 0
    with pq.ParquetWriter(new, schema) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if sum(one.num_rows for one in waiting) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting).cast(schema))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting).cast(schema))
    new.replace(path)
    return rows


def earlier_runs(out: Path, log_dirs: str, as_of_ms: int) -> list[RunSummary]:
    """Return the summaries of earlier audits of the same directories, oldest first."""
    files = (out / DIRECTORY / RUNS).glob("date=*/run=*/*.parquet")
    names = RUNS_SCHEMA.names
    found = [RunSummary(**row) for path in files for row in pq.ParquetFile(path).read(names).to_pylist()]
    return sorted(
        (run for run in found if run.log_dirs == log_dirs and run.as_of_ms < as_of_ms),
        key=lambda run: run.as_of_ms,
    )


def read_offsets_of_run(spark: SparkSession, out: Path, run: RunSummary) -> DataFrame | None:
    """Return the table of committed offsets that an earlier run wrote, or None if the table has been deleted."""
    path = _place(OFFSETS, out, run.as_of_ms)
    return spark.read.parquet(str(path)) if path.exists() else None
