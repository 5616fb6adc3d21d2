# SPDX-License-Identifier: Apache-2.0
"""Asks the HTTP address of a process for groups."""

import json
import urllib.request
from typing import Any
from urllib.parse import urlencode


def fetch_overview(port: int, path: str, **query: str) -> dict[str, Any]:
    """The answer of a process to a question about groups; raises HTTPError if it has none."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urlencode(query)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
