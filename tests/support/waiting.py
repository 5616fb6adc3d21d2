# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition instead of sleeping for luck."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    timeout_s: float = 120.0,
    *,
    what: str | Callable[[], str] = "the condition",
    interval_s: float = 0.02,
) -> T:
    """Poll `condition` until it returns something true, and return that.

    Raises AssertionError after `timeout_s` seconds; `what` (text, or a function that describes the state at that
    moment) says in it what was waited for.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            described = what if isinstance(what, str) else what()
            raise AssertionError(f"gave up after {timeout_s:g} s waiting for {described}")
        time.sleep(interval_s)
