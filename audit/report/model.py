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


class Hour(msgspec.Struct, frozen=True):
    """What was written within an hour that starts at `hour_ms`."""

    hour_ms: int
    commits: int
    group_records: int


class PartitionSize(msgspec.Struct, frozen=True):
    """One partition of the log."""

    partition: int
    records: int
    bytes: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An audit. `abouts` has a sentence for every check, `states` the number of groups by state."""

    run: RunFacts
    against: str | None
    findings: Sequence[Finding]
    abouts: Mapping[str, str]
    hours: Sequence[Hour]
    states: Mapping[str, int]
    sizes: Sequence[PartitionSize]
    rebalances: Sequence[tuple[str, int]]
    earlier: Sequence[RunFacts]

    def worst(self) -> Severity | None:
        """The gravest severity that was found."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in reversed(SEVERITIES) if severity in found), None)

    def of(self, severity: Severity) -> list[Finding]:
        """The findings of one severity, the most frequent first."""
        chosen = (finding for finding in self.findings if finding.severity == severity)
        return sorted(chosen, key=lambda finding: (-finding.count, finding.check, finding.partition or 0))


def reaches(worst: Severity | None, fail_on: Severity) -> bool:
    """Whether something was found that is at least as grave as `fail_on`."""
    return worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on)
