# SPDX-License-Identifier: Apache-2.0
"""Writes all reports to the output directory; each appears whole or not at all."""

import os
from pathlib import Path
from typing import Final

from audit.errors import AuditError
from audit.report.html import html_page
from audit.report.json_summary import summary_json
from audit.report.markdown import render_markdown_report
from audit.report.model import Report
from audit.report.prometheus import prometheus_text

SUMMARY_FILE: Final = "summary.json"
HTML_FILE: Final = "report.html"
MARKDOWN_FILE: Final = "summary.md"
PROMETHEUS_FILE: Final = "groupkeeper_audit.prom"


def write_reports(report: Report, out: Path) -> None:
    """Replace the reports in `out`; summary.json comes last. Raises AuditError."""
    contents = {
        HTML_FILE: html_page(report).encode(),
        MARKDOWN_FILE: render_markdown_report(report).encode(),
        PROMETHEUS_FILE: prometheus_text(report).encode(),
        SUMMARY_FILE: summary_json(report),
    }
    for name, content in contents.items():
        _replace(out / name, content)


def check_writable(out: Path) -> None:
    """Raise AuditError unless reports can be written to `out`, which may not exist yet; nothing is changed."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise AuditError(f"--out {out}: {there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise AuditError(f"--out {out}: {there} cannot be written")


def _replace(path: Path, content: bytes) -> None:
    # The collector reads every *.prom that it finds, so an incomplete file has a name that ends otherwise.
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(content)
        os.replace(new, path)  # noqa: PTH105 - the name states that it replaces
    except OSError as error:
        raise AuditError(f"{path}: {error.strerror or error}") from error
