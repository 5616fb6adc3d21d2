# SPDX-License-Identifier: Apache-2.0
"""One line when a limit is near, one when it refuses, and none again before it was far."""

from collections import Counter

from coordinator.jobs.limit_watch import Limit, LimitWatch
from tests.support.log_lines import LogLines, captured


class Watched:
    """One limit of 100, and what is said of it."""

    def __init__(self) -> None:
        self.used = 0
        self.refusals: Counter[str] = Counter()
        self.watch = LimitWatch([Limit("things.max", 100, lambda: self.used)], self.refusals)

    def lines_at(self, used: int, refusals: int = 0) -> list[str]:
        self.used = used
        self.refusals["things.max"] += refusals
        with captured() as lines:
            self.watch.check()
        return lines.events


def test_a_limit_is_said_to_be_near_once() -> None:
    watched = Watched()
    said = [watched.lines_at(used) for used in (0, 79, 80, 100, 75, 81, 69, 80)]
    assert said == [[], [], ["a limit is near"], [], [], [], [], ["a limit is near"]]


def test_refusals_are_said_when_they_begin() -> None:
    watched = Watched()
    assert watched.lines_at(100) == ["a limit is near"]
    assert watched.lines_at(100, refusals=5) == ["a limit is reached"]
    assert watched.lines_at(100, refusals=5) == []
    assert watched.lines_at(90) == []
    assert watched.lines_at(100, refusals=1) == []
    assert watched.lines_at(10) == []
    assert watched.lines_at(100, refusals=1) == ["a limit is reached", "a limit is near"]


def test_what_was_refused_before_is_no_news(lines: LogLines) -> None:
    refusals = Counter({"things.max": 3})
    LimitWatch([Limit("things.max", 100, lambda: 1)], refusals).check()
    assert lines.lines == []
