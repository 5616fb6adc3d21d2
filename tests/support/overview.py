# SPDX-License-Identifier: Apache-2.0
"""Asks the HTTP address of a process for groups."""

import json
import urllib.request
from typing import Any
from urllib.parse import urlencode


def fetch_group_page(port: int, **query: str) -> dict[str, Any]:
    """The page of groups that a process shows."""
    url = f"http://127.0.0.1:{port}/api/v1/groups?{urlencode(query)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
