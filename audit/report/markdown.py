# SPDX-License-Identifier: Apache-2.0
"""The audit as Markdown for a mail, a chat, or the summary of a job."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from audit.options import SEVERITIES, Severity
from audit.report.model import CheckResult, Finding, Report

FINDINGS_SHOWN: Final = 10
"""The number of findings of each check; a mail is short."""
_WORDS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def render_markdown_report(report: Report) -> str:
    """Return the findings by severity, with the size of the audited log."""
    return "".join(f"{line}\n" for line in _lines(report))


def escape_markdown(text: str) -> str:
    """Escape text from outside such that Markdown shows it unchanged, on one line."""
    printable = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return _MARKUP.sub(r"\\\1", printable)


def verdict(report: Report) -> str:
    """Return the audit in one sentence."""
    if not report.findings:
        return "Nothing to report: the log can be trusted."
    times = [(report.count_findings_of_severity(severity), word) for severity, word in _WORDS.items()]
    parts = [f"{number:,} {word}{'' if number == 1 else 's'}" for number, word in times if number]
    checks = len({finding.check for finding in report.findings})
    return f"{', '.join(parts)}, from {checks} check{'' if checks == 1 else 's'}."


def section_title(severity: Severity) -> str:
    """Return the heading above the findings of this severity."""
    return f"{_WORDS[severity]}s".capitalize()


def _lines(report: Report) -> Iterator[str]:
    run = report.run
    yield f"# Audit of {datetime.fromtimestamp(run.as_of_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    yield ""
    yield f"**{verdict(report)}**"
    yield ""
    yield (
        f"{run.records:,} records in {run.partitions} partitions, {run.groups:,} groups, {run.offsets:,} committed "
        f"offsets; read in {run.seconds:.1f} s from `{run.log_dirs.replace('`', '')}`"
        + (f" and compared with {escape_markdown(report.against)}." if report.against else ".")
    )
    for severity in reversed(SEVERITIES):
        yield from _severity(report, severity)


def _severity(report: Report, severity: Severity) -> Iterator[str]:
    found = report.results_of_severity(severity)
    if not found:
        return
    yield ""
    yield f"## {section_title(severity)}"
    for one in found:
        yield from _check(one)


def _check(found: CheckResult) -> Iterator[str]:
    yield ""
    yield f"### {escape_markdown(found.display_name)}: {found.occurrences_text}"
    yield ""
    yield f"{escape_markdown(found.words.about)} **What to do:** {escape_markdown(found.words.todo)}"
    yield ""
    yield "| partition | times | the first |"
    yield "|--:|--:|---|"
    for finding in found.findings[:FINDINGS_SHOWN]:
        partition = "" if finding.partition is None else finding.partition
        yield f"| {partition} | {finding.count:,} | {escape_markdown(_first(finding))} |"
    if len(found.findings) > FINDINGS_SHOWN:
        yield ""
        yield f"and {len(found.findings) - FINDINGS_SHOWN:,} more, which are in summary.json."


def _first(finding: Finding) -> str:
    if finding.file is None:
        return finding.message
    at = "" if finding.position is None else f" at byte {finding.position:,}"
    return f"{finding.message} ({finding.file}{at})"
