# SPDX-License-Identifier: Apache-2.0
"""The reports of many findings: grouped by check, with names and numbers in sight, and what to do."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from audit.checks import all_checks
from audit.facts.log_facts import RunSummary
from audit.options import Severity
from audit.report.html import ROWS_SHOWN, html_page
from audit.report.markdown import FINDINGS_SHOWN, render_markdown_report, verdict
from audit.report.model import CheckText, Finding, HourTotals, PartitionSize, Report
from audit.report.prometheus import prometheus_text
from tests.support.browser import screenshot_of

PARTITIONS = 50


def finding(check: str, severity: Severity, partition: int, count: int = 1) -> Finding:
    return Finding(
        check=check,
        severity=severity,
        partition=partition,
        file=f"/data/__consumer_offsets-{partition}/00000000000000000000.log",
        position=100,
        count=count,
        message=f"group 'payments-{partition}' committed 1 after 2 for orders",
    )


def report(*findings: Finding) -> Report:
    severities = [one.severity for one in findings]
    run = RunSummary(
        log_dirs="/data",
        as_of_ms=1_700_000_000_000,
        partitions=PARTITIONS,
        records=1_000,
        bytes=100_000,
        groups=40,
        offsets=400,
        findings=len(findings),
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        infos=severities.count("info"),
        seconds=1.0,
    )
    return Report(
        run=run,
        against=None,
        findings=findings,
        checks={check.name: CheckText(check.about, check.todo) for check in all_checks()},
        hours=[HourTotals(1_700_000_000_000 + hour * 3_600_000, hour % 24 * 100, 1) for hour in range(48)],
        states={"Stable": 30, "Empty": 10},
        sizes=[PartitionSize(number, 20 + number, 2_000) for number in range(PARTITIONS)],
        rebalances=[("payments-1", 12)],
        earlier=(),
    )


MANY = report(
    *(finding("committed_offset_back", "warning", number, 1 + number % 3) for number in range(PARTITIONS)),
    finding("growth", "warning", 0),
    finding("batch_crc", "error", 7),
)


class Outline(HTMLParser):
    """Headings, and the words that show without a click, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.pictures_before_checks = 0
        self.shown = ""
        self._folded = 0
        self._heading = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._folded += tag == "details"
        self._heading = tag in ("h2", "h3")
        if self._heading:
            self.headings.append("")
        if tag == "svg" and "What to do" not in self.shown:
            self.pictures_before_checks += 1

    def handle_endtag(self, tag: str) -> None:
        self._folded -= tag == "details"
        if tag in ("h2", "h3"):
            self._heading = False

    def handle_data(self, data: str) -> None:
        if not self._folded:
            self.shown += data
        if self.headings and self._heading:
            self.headings[-1] += f" {data.strip()}"


def test_a_check_has_one_card_however_many_partitions_it_names() -> None:
    page = html_page(MANY)
    assert page.count('class="card check"') == 3
    assert page.count(MANY.checks["committed_offset_back"].about) == 1
    shown = re.sub(r"\s+", " ", Outline(page).shown)
    assert "committed offset back 99 times in 50 partitions" in shown
    assert "batch crc 1 time in 1 partition" in shown


def test_groups_and_what_to_do_are_in_sight_and_most_partitions_are_not() -> None:
    shown = Outline(html_page(MANY)).shown
    assert shown.count("group 'payments-") == ROWS_SHOWN + 2
    assert "group 'payments-2'" in shown, "those with most come first"
    for check in ("committed_offset_back", "growth", "batch_crc"):
        assert MANY.checks[check].todo in shown
    assert f"{PARTITIONS - ROWS_SHOWN} more" in html_page(MANY)


def test_the_pictures_come_before_the_checks_and_the_errors_before_the_warnings() -> None:
    page = html_page(MANY)
    assert Outline(page).pictures_before_checks == page.count("<svg") > 4
    assert page.index("batch crc") < page.index(MANY.checks["committed_offset_back"].about)


def test_all_reports_count_alike() -> None:
    assert verdict(MANY) == "1 error, 100 warnings, from 3 checks."
    text = prometheus_text(MANY)
    (errors, warnings) = (
        sum(int(count) for count in re.findall(rf'severity="{severity}"\}} (\d+)', text))
        for severity in ("error", "warning")
    )
    assert (errors, warnings) == (1, 100)
    assert verdict(report()) == "Nothing to report: the log can be trusted."
    assert verdict(report(finding("growth", "warning", 1))) == "1 warning, from 1 check."


def test_what_is_worth_knowing_is_a_note_in_all_reports() -> None:
    noted = report(finding("replica_gap", "info", 1), finding("growth", "warning", 0))
    assert verdict(noted) == "1 warning, 1 note, from 2 checks."
    assert [title for title in render_markdown_report(noted).splitlines() if title.startswith("## ")] == [
        "## Warnings",
        "## Notes",
    ]
    assert "<h2>Notes</h2>" in html_page(noted)


def test_the_mail_has_each_check_once_with_its_names_and_what_to_do() -> None:
    text = render_markdown_report(MANY)
    assert text.count("### ") == 3
    assert "### committed offset back: 99 times in 50 partitions" in text
    assert text.count("**What to do:**") == 3
    assert text.count("payments") == FINDINGS_SHOWN + 2
    assert f"and {PARTITIONS - FINDINGS_SHOWN} more" in text


def test_every_check_says_what_to_do() -> None:
    for check in all_checks():
        assert check.todo.endswith("."), check.name
        assert check.todo[0].isupper(), check.name


@pytest.mark.slow
def test_a_browser_shows_many_findings(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_page(MANY))
    for width in (1100, 390):
        assert len(screenshot_of(page, tmp_path / f"{width}.png", width)) > 20_000
