# SPDX-License-Identifier: Apache-2.0
"""The steps of one audit from beginning to end."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from audit.checks import query_findings
from audit.compared.cluster_comparison import PAUSE_S, compare_with_live_cluster
from audit.compared.compaction_comparison import find_differences_after_compaction
from audit.compared.live_state_reader import LiveState, read_live_state
from audit.errors import AuditError
from audit.facts.inventory import join_directory_snapshots
from audit.facts.log_facts import Facts, RunSummary
from audit.options import AuditOptions
from audit.report import parquet_tables
from audit.report.collect import collect_all_but_findings, collect_findings, make_report_with_findings
from audit.report.model import Report
from audit.report.write import write_reports
from audit.run.reading import BackgroundLogReader, read_facts
from audit.schema import DIFFERENCES, local_table
from audit.source.compacted_copy import check_work_dir
from audit.source.directory_snapshot import DirectorySnapshot, take_directory_snapshot
from audit.source.remote import is_url, take_remote_dir_snapshot

Step = Callable[[str], None]
"""The callback that gets a description of the next step."""


def audit(spark: SparkSession, options: AuditOptions, *, step: Step = lambda _: None) -> Report:
    """Read the log, run every check, and write all results to `options.out`.

    Raises AuditError if the audit cannot be done; then the table `runs` does not name tables that were written.
    """
    started = time.monotonic()
    out = _directory_made(options.out)
    looks = {place: _take_snapshot(spark, place) for place in options.log_dirs}
    inventory = join_directory_snapshots(looks)
    if options.compacted is not None:
        check_work_dir(options.compacted, options.log_dirs)
    before = None
    if options.against is not None:
        step("asking the cluster")
        before = read_live_state(options.against)
        time.sleep(PAUSE_S)  # the reported state is on its way into the segments
    step("reading the log")
    reading = BackgroundLogReader(spark, options, inventory, *_earlier(spark, options, out))
    found = query_findings(reading.facts)
    facts = reading.wait_for_facts()
    # A cleaner may have progressed meanwhile, which explains gaps now; directories of URLs do not change.
    now = join_directory_snapshots(
        {at: seen if is_url(at) else _take_snapshot(spark, at) for at, seen in looks.items()}
    )
    if now != inventory:
        facts = msgspec.structs.replace(facts, inventory=now)
    if before is not None:
        step("asking the cluster again")
        facts = _with_differences(facts, _to_cluster(facts, before))
    if options.compacted is not None:
        step("compacting a copy of each log")
        facts = _with_differences(facts, find_differences_after_compaction(facts))
    step("asking the checks")
    if facts is not reading.facts:  # more is known by now
        found = query_findings(facts)
    report = _write_tables(facts, found, out, step, started)
    step("writing the reports")
    parquet_tables.write_run_summary(report.run, out)
    write_reports(report, out)
    return report


def _take_snapshot(spark: SparkSession, place: str) -> DirectorySnapshot:
    return take_remote_dir_snapshot(spark, place) if is_url(place) else take_directory_snapshot(place)


def _write_tables(facts: Facts, found: DataFrame, out: Path, step: Step, started: float) -> Report:
    """Write the tables and the findings; return the report on them."""
    with ThreadPoolExecutor(2) as threads:  # each of these uses less than one core
        written = threads.submit(parquet_tables.write_fact_tables, facts, out)
        collected = threads.submit(collect_all_but_findings, facts)
        found = found.localCheckpoint()
        listed = collect_findings(found)
        step("writing the tables")
        parquet_tables.write_parquet_table("findings", found, out, facts.options.as_of_ms)
        written.result()
        return make_report_with_findings(collected.result(), listed, time.monotonic() - started)


def _to_cluster(facts: Facts, before: LiveState) -> DataFrame:
    """Return the differences from the running cluster."""
    address = facts.options.against
    assert address is not None
    found = compare_with_live_cluster(facts, before, lambda only: read_live_state(address, only), read_facts)
    rows = [(one.kind, *one.place, one.message) for one in found]
    return local_table(facts.spark, DIFFERENCES, rows)


def _with_differences(facts: Facts, more: DataFrame) -> Facts:
    """Return the facts with additional differences."""
    known = facts.differences
    return msgspec.structs.replace(facts, differences=more if known is None else known.unionByName(more))


def _earlier(
    spark: SparkSession, options: AuditOptions, out: Path
) -> tuple[list[RunSummary], DataFrame | None]:
    """Return the summaries of earlier audits, and the state that the last one found."""
    runs = parquet_tables.earlier_runs(out, ",".join(options.log_dirs), options.as_of_ms)
    return runs, parquet_tables.read_offsets_of_run(spark, out, runs[-1]) if runs else None


def _directory_made(out: str) -> Path:
    path = Path(out)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuditError(f"{out}: {error.strerror or error}") from error
    return path
