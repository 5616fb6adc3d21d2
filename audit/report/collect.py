# SPDX-License-Identifier: Apache-2.0
"""Collects the plain values of a report from Spark's tables."""

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks import all_checks
from audit.checks.offset_group_joins import NO_LEDGER
from audit.facts.log_facts import Facts, RunSummary
from audit.report.model import CheckText, Finding, HourTotals, PartitionSize, Report

HOURS_SHOWN = 24 * 14
GROUPS_SHOWN = 15
FINDINGS_MAX = 10_000
"""The limit of findings in a report, of which more would not be read; the Parquet table has all of them."""


def collect_findings(found: DataFrame) -> list[Finding]:
    """Return the findings, the gravest first."""
    rows = found.orderBy(
        F.expr("case severity when 'error' then 0 when 'warning' then 1 else 2 end"),
        "check",
        "partition",
        "file",
    ).limit(FINDINGS_MAX)
    return [Finding(**row.asDict()) for row in rows.collect()]


def collect_all_but_findings(facts: Facts) -> Report:
    """Return the report without findings and duration; the facts' tables must be registered in SQL."""
    sizes = _sizes(facts)
    return Report(
        run=_run(facts, sizes),
        against=facts.options.against,
        findings=(),
        checks={check.name: CheckText(check.about, check.todo) for check in all_checks()},
        hours=_hours(facts),
        states=_states(facts),
        sizes=[PartitionSize(number, *sizes.get(number, (0, 0))) for number in facts.inventory.partitions],
        rebalances=_rebalances(facts),
        earlier=facts.previous_runs,
    )


def make_report_with_findings(report: Report, found: Sequence[Finding], audit_seconds: float) -> Report:
    """Return the report with its findings, and with the duration of the audit."""
    severities = [finding.severity for finding in found]
    run = msgspec.structs.replace(
        report.run,
        findings=len(found),
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        infos=severities.count("info"),
        seconds=round(audit_seconds, 3),
    )
    return msgspec.structs.replace(report, run=run, findings=found)


def _run(facts: Facts, sizes: Mapping[int | None, tuple[int, int]]) -> RunSummary:
    """Return the summary of the audit in one row, without findings and duration."""
    (counted,) = facts.spark.sql(
        "select count(distinct partition, group), coalesce(sum(number), 0) from ("
        f"select partition, group, 1 as number from live_offsets where {NO_LEDGER}"
        " union all select partition, group, 0 from live_groups)"
    ).collect()
    return RunSummary(
        log_dirs=",".join(facts.options.log_dirs),
        as_of_ms=facts.options.as_of_ms,
        partitions=len(facts.inventory.partitions),
        records=sum(records for records, _ in sizes.values()),
        bytes=sum(size for _, size in sizes.values()),
        groups=counted[0],
        offsets=counted[1],
        findings=0,
        errors=0,
        warnings=0,
        infos=0,
        seconds=0.0,
    )


def _hours(facts: Facts) -> list[HourTotals]:
    now_ms = facts.options.as_of_ms
    rows = facts.spark.sql(
        "select hour_ms, sum(commits), sum(group_records) from hours"
        f" where hour_ms between {now_ms - HOURS_SHOWN * 3_600_000} and {now_ms} group by hour_ms"
    )
    return sorted((HourTotals(*row) for row in rows.collect()), key=lambda hour: hour.hour_ms)


def _states(facts: Facts) -> dict[str, int]:
    rows = facts.spark.sql(
        f"""
        select state, count(*) as groups from (
            select state from live_groups
            union all
            select 'Not stored' from (select distinct partition, group from live_offsets where {NO_LEDGER})
                left anti join live_groups using (partition, group)
                left anti join other_groups using (partition, group)
            union all
            select 'Other protocol' from other_groups
        ) group by state
        """
    ).collect()
    return {row["state"]: row["groups"] for row in sorted(rows, key=lambda row: -row["groups"])}


def _sizes(facts: Facts) -> dict[int | None, tuple[int, int]]:
    """Return records and bytes by partition; None stands for a file that belongs to no partition."""
    rows = facts.spark.sql("select partition, sum(records), sum(bytes) from ranges group by partition")
    return {row[0]: (row[1], row[2]) for row in rows.collect()}


def _rebalances(facts: Facts) -> list[tuple[str, int]]:
    rows = facts.spark.sql(
        "select group, sum(count) as count from rebalances group by group"
        f" order by count desc, group limit {GROUPS_SHOWN}"
    )
    return [(row["group"], row["count"]) for row in rows.collect()]
