# SPDX-License-Identifier: Apache-2.0
"""What came of a peer's tests, and how that is shown."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.support.target import target_kind

WIDTH = 118
PASSED = Path(__file__).with_name("passed")
"""A file for each peer: the tests that passed when `python -m tests.peers --record` was run last.

So for Groupkeeper alone; for a gateway and for Kafka in folders of their names.
"""


def recorded_in(kind: str) -> Path:
    """Where the tests stand that passed against that kind of target."""
    return PASSED if kind == "groupkeeper" else PASSED / kind


def recorded(folder: Path, peer: str) -> set[str]:
    """The tests of a peer that a folder names; none where it has no file of it."""
    file = _file(folder, peer)
    return set(file.read_text().splitlines()) if file.exists() else set()


class Verdict(Enum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    """One test of a peer: `reason` says why it was skipped or how it failed."""

    name: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0


@dataclass
class Report:
    """All tests of one peer; `unavailable` says why there are none."""

    peer: str
    version: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    unavailable: str = ""
    seconds: float = 0.0

    def names(self, verdict: Verdict) -> list[str]:
        """The tests with this verdict."""
        return [outcome.name for outcome in self.outcomes if outcome.verdict is verdict]

    def lost(self, folder: Path | None = None) -> list[str]:
        """The recorded tests that did not pass this time: recorded for the chosen target, or in a folder."""
        passed = recorded(folder or recorded_in(target_kind()), self.peer)
        return sorted(passed - set(self.names(Verdict.PASSED)))

    def record(self, folder: Path | None = None) -> None:
        """Write down which tests passed: for the chosen target, or in a folder."""
        file = _file(folder or recorded_in(target_kind()), self.peer)
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{name}\n" for name in sorted(self.names(Verdict.PASSED))))

    def lines(self) -> Iterable[str]:
        """The report as a table: a line a test, but those that were skipped for one reason together."""
        if self.unavailable:
            yield f"{self.peer} {self.version}: not run: {self.unavailable}"
            return
        counts = ", ".join(f"{len(self.names(verdict))} {verdict.value}" for verdict in Verdict)
        yield f"{self.peer} {self.version}: {counts}, in {self.seconds:.0f} s"
        for verdict in (Verdict.PASSED, Verdict.FAILED):
            for outcome in self.outcomes:
                if outcome.verdict is verdict:
                    yield f"  {verdict.value:<7} {outcome.seconds:6.1f} s  {outcome.name}"
                    if outcome.reason:
                        yield from _wrapped(outcome.reason, " " * 20)
        for reason in dict.fromkeys(o.reason for o in self.outcomes if o.verdict is Verdict.SKIPPED):
            skipped = [o.name for o in self.outcomes if o.verdict is Verdict.SKIPPED and o.reason == reason]
            yield f"  skipped {len(skipped):4}    {reason}"
            yield from _wrapped(", ".join(skipped), " " * 20)


def _file(folder: Path, peer: str) -> Path:
    return folder / f"{peer}.txt"


def _wrapped(text: str, indent: str) -> Iterable[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent)
