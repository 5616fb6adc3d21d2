# SPDX-License-Identifier: Apache-2.0
"""What an audit found, as plain values: all the reports are made from this."""

from collections.abc import Mapping, Sequence

import msgspec

from audit.facts.facts import RunFacts
from audit.options import SEVERITIES, Severity


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`count` times what `check` looks for; `file` and `position` (bytes) say where the first one is."""

    check: str
    severity: Severity
    partition: int | None
    file: str | None
    position: int | None
    count: int
    message: str


class HourTotals(msgspec.Struct, frozen=True):
    """What was written within an hour that starts at `hour_ms`."""

    hour_ms: int
    commits: int
    group_records: int


class PartitionSize(msgspec.Struct, frozen=True):
    """One partition of the log."""

    partition: int
    records: int
    bytes: int


class CheckText(msgspec.Struct, frozen=True):
    """A check in words: what it means when it finds something, and what to do."""

    about: str
    todo: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """All that one check has found: `count` times, in so many `partitions`; `findings` has the most frequent first."""

    check: str
    severity: Severity
    words: CheckText
    count: int
    partitions: int
    findings: Sequence[Finding]

    @property
    def name(self) -> str:
        """The check's name for people."""
        return self.check.replace("_", " ")

    @property
    def extent(self) -> str:
        """How often, and in how many partitions: `29 times in 5 partitions`."""
        where = f" in {_counted(self.partitions, 'partition')}" if self.partitions else ""
        return f"{_counted(self.count, 'time')}{where}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An audit. `checks` has words for every check, `states` the number of groups by state."""

    run: RunFacts
    against: str | None
    findings: Sequence[Finding]
    checks: Mapping[str, CheckText]
    hours: Sequence[HourTotals]
    states: Mapping[str, int]
    sizes: Sequence[PartitionSize]
    rebalances: Sequence[tuple[str, int]]
    earlier: Sequence[RunFacts]

    def worst(self) -> Severity | None:
        """The gravest severity that was found."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in reversed(SEVERITIES) if severity in found), None)

    def times(self, severity: Severity) -> int:
        """How often something of this severity was found."""
        return sum(finding.count for finding in self.findings if finding.severity == severity)

    def of(self, severity: Severity) -> list[CheckResult]:
        """What checks of one severity have found, the most frequent first."""
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


def reaches(worst: Severity | None, fail_on: Severity) -> bool:
    """Whether something was found that is at least as grave as `fail_on`."""
    return worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on)
