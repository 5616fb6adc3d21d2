# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that looks at a page."""

import shutil
import subprocess
from pathlib import Path

from tests.support.missing import skip_or_fail

_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


def screenshot_of(page: Path, picture: Path, width: int, height: int = 2_000) -> bytes:
    """The page as a PNG; skips where there is no Chromium, and fails there in CI."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        skip_or_fail("this test looks at a page with Chromium, and there is none")
    profile = picture.with_suffix(".profile")
    subprocess.run(
        [browser, *_QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}",
         f"--screenshot={picture}", page.as_uri()],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return picture.read_bytes()
