# SPDX-License-Identifier: Apache-2.0
"""The result of an audit as plain values, from which all reports are made."""

from collections.abc import Mapping, Sequence

import msgspec

from audit.facts.log_facts import RunSummary
from audit.options import SEVERITIES, Severity


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of `check`, `count` times; `file` and `position` (bytes) are the place of the first one."""

    check: str
    severity: Severity
    partition: int | None
    file: str | None
    position: int | None
    count: int
    message: str


class HourTotals(msgspec.Struct, frozen=True):
    """The numbers of records that were written within an hour that starts at `hour_ms`."""

    hour_ms: int
    commits: int
    group_records: int


class PartitionSize(msgspec.Struct, frozen=True):
    """The size of one partition of the log."""

    partition: int
    records: int
    bytes: int


class CheckText(msgspec.Struct, frozen=True):
    """A check in words: the meaning of its findings, and what to do."""

    about: str
    todo: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """All findings of one check: `count` times, in `partitions` partitions; `findings` has the most frequent first."""

    check: str
    severity: Severity
    words: CheckText
    count: int
    partitions: int
    findings: Sequence[Finding]

    @property
    def display_name(self) -> str:
        """The check's name for people."""
        return self.check.replace("_", " ")

    @property
    def occurrences_text(self) -> str:
        """The number of findings and of their partitions: `29 times in 5 partitions`."""
        where = f" in {_counted(self.partitions, 'partition')}" if self.partitions else ""
        return f"{_counted(self.count, 'time')}{where}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report on an audit. `checks` has words for every check, `states` the number of groups by state."""

    run: RunSummary
    against: str | None
    findings: Sequence[Finding]
    checks: Mapping[str, CheckText]
    hours: Sequence[HourTotals]
    states: Mapping[str, int]
    sizes: Sequence[PartitionSize]
    rebalances: Sequence[tuple[str, int]]
    earlier: Sequence[RunSummary]

    def worst_severity(self) -> Severity | None:
        """Return the gravest severity of all findings, or None."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in reversed(SEVERITIES) if severity in found), None)

    def count_findings_of_severity(self, severity: Severity) -> int:
        """Return the number of findings of this severity."""
        return sum(finding.count for finding in self.findings if finding.severity == severity)

    def results_of_severity(self, severity: Severity) -> list[CheckResult]:
        """Return the findings of the checks of one severity, the most frequent first."""
        by_check: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.severity == severity:
                by_check.setdefault(finding.check, []).append(finding)
        found = [self._found(check, severity, findings) for check, findings in by_check.items()]
        return sorted(found, key=lambda one: (-one.count, one.check))

    def _found(self, check: str, severity: Severity, findings: list[Finding]) -> CheckResult:
        return CheckResult(
            check=check,
            severity=severity,
            words=self.checks.get(check, CheckText("", "")),
            count=sum(finding.count for finding in findings),
            partitions=len({finding.partition for finding in findings} - {None}),
            findings=sorted(findings, key=lambda one: (-one.count, one.partition or 0, one.file or "")),
        )


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def is_at_least_as_severe(worst: Severity | None, fail_on: Severity) -> bool:
    """Return whether the worst finding is at least as grave as `fail_on`."""
    return worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on)
