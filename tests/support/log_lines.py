# SPDX-License-Identifier: Apache-2.0
"""What was logged, for tests: through structlog itself, whichever module says it and however it was compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from structlog.testing import capture_logs
from structlog.typing import EventDict


class LogLines:
    """Every line since the test asked for it, in order."""

    def __init__(self, entries: list[EventDict]) -> None:
        self._entries = entries

    @property
    def lines(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Level, event and fields of each; the level of one with a traceback is `exception`."""
        return [_line(dict(entry)) for entry in self._entries]

    @property
    def events(self) -> list[str]:
        """The events alone."""
        return [event for _, event, _ in self.lines]

    def of(self, *levels: str) -> list[str]:
        """The lines of these levels as text."""
        return [f"{event} {fields}" for level, event, fields in self.lines if level in levels]

    def fields(self, event: str) -> list[dict[str, Any]]:
        """The fields of each line of this event."""
        return [fields for _, each, fields in self.lines if each == event]


def _line(entry: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    level, event = entry.pop("log_level"), entry.pop("event")
    return "exception" if entry.pop("exc_info", False) else level, event, entry


@contextmanager
def captured() -> Iterator[LogLines]:
    """What is logged in the block."""
    with capture_logs() as entries:
        yield LogLines(entries)
