# SPDX-License-Identifier: Apache-2.0
"""From Spark's tables to the plain values of a report."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks import all_checks
from audit.facts import Facts, RunFacts
from audit.report.model import Finding, Hour, PartitionSize, Report

HOURS_SHOWN = 24 * 14
GROUPS_SHOWN = 15
FINDINGS_MAX = 10_000
"""A report of more helps nobody; the Parquet table has them all."""


def collect_findings(found: DataFrame) -> list[Finding]:
    """The findings, the gravest first."""
    rows = found.orderBy(
        F.expr("case severity when 'error' then 0 when 'warning' then 1 else 2 end"),
        "check",
        "partition",
        "file",
    ).limit(FINDINGS_MAX)
    return [Finding(**row.asDict()) for row in rows.collect()]


def collect_run(facts: Facts, found: Sequence[Finding], seconds: float) -> RunFacts:
    """The audit in one line; `seconds` is how long it took so far."""
    totals = facts.ranges.agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes")).first()
    assert totals is not None
    groups = facts.live_offsets.select("partition", "group").union(
        facts.live_groups.select("partition", "group")
    )
    severities = [finding.severity for finding in found]
    return RunFacts(
        log_dirs=",".join(facts.options.log_dirs),
        as_of_ms=facts.options.as_of_ms,
        partitions=len(facts.inventory.partitions),
        records=totals["records"] or 0,
        bytes=totals["bytes"] or 0,
        groups=groups.distinct().count(),
        offsets=facts.live_offsets.count(),
        findings=len(found),
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        infos=severities.count("info"),
        seconds=round(seconds, 3),
    )


def collect_report(facts: Facts, run: RunFacts, found: Sequence[Finding]) -> Report:
    """Everything that the reports show."""
    return Report(
        run=run,
        against=facts.options.against,
        findings=found,
        abouts={check.name: check.about for check in all_checks()},
        hours=_hours(facts),
        states=_states(facts),
        sizes=_sizes(facts),
        rebalances=_rebalances(facts),
        earlier=facts.previous_runs,
    )


def _hours(facts: Facts) -> list[Hour]:
    first = facts.options.as_of_ms - HOURS_SHOWN * 3_600_000
    rows = (
        facts.hours.where(F.col("hour_ms").between(first, facts.options.as_of_ms))
        .groupBy("hour_ms")
        .agg(F.sum("commits"), F.sum("group_records"))
        .orderBy("hour_ms")
    )
    return [Hour(*row) for row in rows.collect()]


def _states(facts: Facts) -> dict[str, int]:
    stored = facts.live_groups.groupBy("state").agg(F.count("*").alias("groups"))
    simple = (
        facts.live_offsets.select("partition", "group")
        .distinct()
        .join(facts.live_groups, ["partition", "group"], "left_anti")
        .join(facts.other_groups, ["partition", "group"], "left_anti")
        .select(F.lit("Not stored").alias("state"))
        .groupBy("state")
        .agg(F.count("*").alias("groups"))
    )
    others = (
        facts.other_groups.select(F.lit("Other protocol").alias("state"))
        .groupBy("state")
        .agg(F.count("*").alias("groups"))
    )
    rows = stored.union(simple).union(others).collect()
    return {row["state"]: row["groups"] for row in sorted(rows, key=lambda row: -row["groups"])}


def _sizes(facts: Facts) -> list[PartitionSize]:
    rows = facts.ranges.groupBy("partition").agg(
        F.sum("records").alias("records"), F.sum("bytes").alias("bytes")
    )
    found: dict[int, Any] = {row["partition"]: row for row in rows.collect()}
    return [
        PartitionSize(number, found[number]["records"], found[number]["bytes"])
        if number in found
        else PartitionSize(number, 0, 0)
        for number in facts.inventory.partitions
    ]


def _rebalances(facts: Facts) -> list[tuple[str, int]]:
    rows = facts.rebalances.groupBy("group").agg(F.sum("count").alias("count"))
    top = rows.orderBy(F.desc("count"), "group").limit(GROUPS_SHOWN)
    return [(row["group"], row["count"]) for row in top.collect()]
