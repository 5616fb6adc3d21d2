# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: it is built, loads nothing from elsewhere, and can be searched when opened as a file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import chromium, open_tab
from tests.support.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    directory = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    return directory


def test_the_site_has_all_pages_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {page.name for page in site.rglob("*.html")}
    assert {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")} | {"index.html"} <= pages
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="([^"]+)"', page.read_text()
        )
        assert not [source for source in loaded if source.startswith(("http", "//"))], page


@pytest.mark.parametrize(
    "start", ["index.html", "runbooks.html", "bench/RESULTS.html"], ids=["start", "page", "folder"]
)
def test_a_site_that_is_opened_as_a_file_can_be_searched(site: Path, start: str) -> None:
    """From each page; what is found leads to the page and the heading."""
    with chromium() as browser, open_tab(browser, width=1_400) as tab:
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((site / start).as_uri())
        tab.get_by_role("textbox", name="Search").click()
        tab.keyboard.type("expire", delay=20)
        found = tab.locator(".md-search-result__item a", has_text="When offsets expire").first
        expect(found).to_be_visible()
        found.click()
        expect(tab.get_by_role("heading", name="When offsets expire")).to_be_in_viewport()
        assert tab.url.startswith((site / "operations.html").as_uri())
        assert [url for url in asked if not url.startswith(site.as_uri())] == []
