# SPDX-License-Identifier: Apache-2.0
"""Metrics for the node exporter's textfile collector."""

from collections.abc import Iterator

from audit.checks import all_checks
from audit.report.model import Report


def prometheus_text(report: Report) -> str:
    """Return the last audit as gauges. Labels are checks and severities, and no text from outside."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    run = report.run
    gauges = {
        "timestamp_seconds": ("When the last audit was.", run.as_of_ms / 1000),
        "duration_seconds": ("How long it took.", run.seconds),
        "partitions": ("Partitions of __consumer_offsets that it read.", run.partitions),
        "records": ("Records in them.", run.records),
        "log_bytes": ("Bytes in them.", run.bytes),
        "groups": ("Groups that the log has.", run.groups),
        "offsets": ("Committed offsets that the log has.", run.offsets),
    }
    for name, (about, value) in gauges.items():
        yield from _head(name, about)
        yield f"groupkeeper_audit_{name} {value}"
    yield from _head("findings", "What it found, by check and severity.")
    # Every check, also with 0, so that an alert can distinguish "nothing" from "no audit".
    totals = {(check.name, check.severity): 0 for check in all_checks()}
    for finding in report.findings:
        totals[finding.check, finding.severity] += finding.count
    for (check, severity), count in totals.items():
        yield f'groupkeeper_audit_findings{{check="{check}",severity="{severity}"}} {count}'


def _head(name: str, about: str) -> Iterator[str]:
    yield f"# HELP groupkeeper_audit_{name} {about}"
    yield f"# TYPE groupkeeper_audit_{name} gauge"
