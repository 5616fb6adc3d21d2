# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that Playwright drives: it finds things by role and name, as a screen reader names them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from bench.browser import LIMIT_MS, find_chromium, launch
from tests.support.missing import skip_or_fail

Scheme = Literal["dark", "light"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; skips where there is no Chromium, and fails there in CI.

    While it runs, this process can run no other event loop.
    """
    binary = find_chromium()
    if binary is None:
        skip_or_fail("this test looks at a page with Chromium, and there is none")
    expect.set_options(timeout=LIMIT_MS)
    with launch(binary) as browser:
        yield browser


@contextmanager
def open_tab(
    browser: Browser, *, width: int = 1_280, height: int = 800, scheme: Scheme = "light"
) -> Iterator[Page]:
    """An empty tab of this size; an error of a script on its pages fails the test at the end."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(LIMIT_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert errors == []


def accessibility_violations(page: Page) -> str:
    """What axe-core finds wrong with a page for people who use it differently; empty if nothing."""
    results = Axe().run(page)
    return "" if results.violations_count == 0 else str(results.generate_report())


def screenshot_of(page: Path, picture: Path, width: int, height: int = 2_000) -> bytes:
    """A file as a PNG of this size."""
    with chromium() as browser, open_tab(browser, width=width, height=height) as tab:
        tab.goto(page.as_uri())
        return tab.screenshot(path=picture)
