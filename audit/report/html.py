# SPDX-License-Identifier: Apache-2.0
"""The audit as one HTML page that needs nothing else: styles and charts are in it, and there is no script."""

from datetime import UTC, datetime
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from audit.options import SEVERITIES
from audit.report import charts
from audit.report.markdown import section_title, verdict
from audit.report.model import Report

ROWS_SHOWN: Final = 5
"""The number of rows of each check; the others, up to ROWS_MAX, show on a click."""
ROWS_MAX: Final = 200


def html_page(report: Report) -> str:
    """Return the page. All text from the log is escaped: names of groups are chosen by clients."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            run=report.run,
            verdict=verdict(report),
            worst=report.worst_severity() or "none",
            sections=[
                (severity, section_title(severity), report.results_of_severity(severity))
                for severity in reversed(SEVERITIES)
            ],
            shown=ROWS_SHOWN,
            most=ROWS_MAX,
            pictures=charts.make_charts(report),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("audit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=_count, size=_size, moment=_moment)
    return environment


def _count(number: int) -> str:
    return f"{number:,}"


def _size(number: int) -> str:
    value = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def _moment(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
