# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that is copied into a peer's suite: skips its tests by the rules in PEERS_RULES, with the reason.

It runs in the peer's own test run, where nothing of this repository can be imported.
"""

import inspect
import json
import os
from collections.abc import Mapping

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what a rule is about; the first one counts."""
    rules = json.loads(os.environ["PEERS_RULES"])
    for item in items:
        reason = _reason(item, rules["names"], rules["words"])
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _reason(item: pytest.Item, names: Mapping[str, str], words: Mapping[str, str]) -> str | None:
    """Why the test is not run: by its name, or by a word that is a fixture of its or stands in its source."""
    name = getattr(item, "originalname", item.name)
    if name in names:
        return names[name]
    source = inspect.getsource(inspect.unwrap(getattr(item, "function")))  # noqa: B009 - any kind of item
    fixtures = getattr(item, "fixturenames", ())
    return next((reason for word, reason in words.items() if word in fixtures or word in source), None)
