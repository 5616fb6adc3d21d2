# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that Playwright drives."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, sync_playwright

LIMIT_MS: Final = 120_000
"""The most time for any step of the browser."""
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = ("--no-sandbox", "--disable-dev-shm-usage")


def find_chromium() -> str | None:
    """Where there is a Chromium, or a Chrome."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def launch(binary: str) -> Iterator[Browser]:
    """A browser; while it runs, this process can run no other event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=list(_FLAGS), timeout=LIMIT_MS)
        try:
            yield browser
        finally:
            browser.close()
