# SPDX-License-Identifier: Apache-2.0
"""A node's log in memory, and a thread that is none: what a test needs that reads the log without a whole node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.faulty import FaultyFileSystem

ROOT = Path("/data")


class AtOnce:
    """An io thread that runs what it is given before it returns."""

    def submit_with_callback(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - as the real thread does
            result = error
        on_done(result)


def memory_log(settings: LogSettings | None = None) -> LogManager:
    """An empty log of all partitions."""
    return LogManager.open(ROOT, settings or LogSettings(), FaultyFileSystem(ROOT))
