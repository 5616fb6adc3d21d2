# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site, and what its pages promise of the files beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.config import Settings

ROOT = Path(__file__).parent.parent
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
RULES = (ROOT / "deploy" / "prometheus.rules.yml").read_text(encoding="utf-8")


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES)
    assert alerts
    assert sorted(re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE)) == sorted(alerts)


def test_a_runbook_says_what_an_alert_means_and_what_to_do() -> None:
    for section in RUNBOOKS.split("\n## ")[1:]:
        assert "**Means.**" in section, section
        assert "**Do.**" in section, section


def test_the_readme_says_at_its_start_what_is_not_protected_and_what_expires() -> None:
    start = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Start")[0]
    for word in (
        "TLS",
        "authentication",
        "authorization",
        "replicates nothing",
        "backup",
        "docs/security.md",
    ):
        assert word in start, word
    assert Settings().offsets_retention_minutes == 7 * 24 * 60
    assert "expire after seven days" in start
    assert "`offsets.retention.minutes`" in start


def test_the_page_on_security_has_a_section_for_each_thing_that_is_left_to_its_reader() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    titles = " ".join(re.findall(r"^## (.+)$", page, re.MULTILINE))
    for word in ("client", "host", "disk", "replication", "Backups", "expire", "Upgrades"):
        assert word in titles, word


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    pages = {page.name for page in tmp_path.rglob("*.html")}
    assert {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")} | {"index.html"} <= pages
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="([^"]+)"', page.read_text()
        )
        assert not [source for source in loaded if source.startswith(("http", "//"))], page
