# SPDX-License-Identifier: Apache-2.0
"""Keeps log lines short and few, because they contain text from clients."""

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

CHARACTERS_MAX: Final = 256
"""The longest text of a field, and of each text within one."""
EVENT_CHARACTERS_MAX: Final = 1_024
TRACEBACK_CHARACTERS_MAX: Final = 16_384
ELEMENTS_MAX: Final = 64
"""The number of elements of a list, or fields of a mapping, that are shown."""

LINES_PER_PERIOD_MAX: Final = 100
PERIOD_S: Final = 1.0
"""The seconds in which up to LINES_PER_PERIOD_MAX lines of one event are written."""
EVENTS_MAX: Final = 1_000
"""The number of events that are counted separately; ours are some dozens."""


def shorten_value(value: Any, characters_max: int = CHARACTERS_MAX) -> Any:
    """Return the value with long parts cut; a cut text or list ends with how many characters or elements were cut."""
    if isinstance(value, str | bytes):
        if len(value) <= characters_max:
            return value
        kept = value[:characters_max]
        text = kept if isinstance(kept, str) else repr(kept)
        return f"{text}... ({len(value) - characters_max} more)"
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        kept_items = list(value.items())[:ELEMENTS_MAX]
        return {
            shorten_value(key) if isinstance(key, str) else key: shorten_value(item)
            for key, item in kept_items
        }
    if isinstance(value, list | tuple | set | frozenset):
        elements = [shorten_value(element) for element in list(value)[:ELEMENTS_MAX]]
        more = len(value) - ELEMENTS_MAX
        return [*elements, f"... ({more} more)"] if more > 0 else elements
    return shorten_value(str(value), characters_max)


class EventCount(msgspec.Struct):
    """The number of times that an event came in the period that began at `began_s`."""

    began_s: float
    level: str
    lines: int = 0
    suppressed: int = 0


class RateLimit:
    """Lets at most LINES_PER_PERIOD_MAX lines of one event through in each PERIOD_S. Safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], EventCount] = {}
        self._forgot_s = -math.inf
        """The time at which events whose periods are over were last forgotten."""
        self._due_s = math.inf
        """The time at which the first period ends in which a line was suppressed."""

    def admit(self, logger: str, event: str, level: str) -> bool:
        """Return whether a line may be written, and count it; to be called after `take_suppressed_counts`."""
        now_s = self._clock()
        with self._lock:
            seen = self._seen.get((logger, event))
            if seen is None:
                seen = self._add(logger, event, EventCount(now_s, level))
            elif now_s - seen.began_s >= PERIOD_S and not seen.suppressed:
                seen.began_s, seen.lines = now_s, 0
            if seen.lines < LINES_PER_PERIOD_MAX:
                seen.lines += 1
                return True
            seen.suppressed += 1
            self._due_s = min(self._due_s, seen.began_s + PERIOD_S)
            return False

    def count_if_suppressed(self, logger: str, event: str) -> bool:
        """Return whether a line would be suppressed, and count it if so; such a line needs no `admit`."""
        now_s = self._clock()
        with self._lock:
            seen = self._seen.get((logger, event))
            if seen is None or seen.lines < LINES_PER_PERIOD_MAX or now_s - seen.began_s >= PERIOD_S:
                return False
            seen.suppressed += 1
            self._due_s = min(self._due_s, seen.began_s + PERIOD_S)
            return True

    def _add(self, logger: str, event: str, new: EventCount) -> EventCount:
        if len(self._seen) >= EVENTS_MAX and new.began_s - self._forgot_s >= PERIOD_S:
            self._forgot_s = new.began_s
            self._seen = {
                key: seen
                for key, seen in self._seen.items()
                if seen.suppressed or seen.began_s > new.began_s - PERIOD_S
            }
        if len(self._seen) >= EVENTS_MAX:
            logger = event = ""  # all other events together
        return self._seen.setdefault((logger, event), new)

    def take_suppressed_counts(self, *, at_end: bool = False) -> list[tuple[str, str, str, int]]:
        """Return logger, event, level and number of lines suppressed in each period that is over; each only once.

        With `at_end` periods that are not over count as well.
        """
        now_s = math.inf if at_end else self._clock()
        if now_s < self._due_s or self._due_s == math.inf:
            return []
        found = []
        with self._lock:
            self._due_s = math.inf
            for (logger, event), seen in list(self._seen.items()):
                if not seen.suppressed:
                    continue
                if now_s - seen.began_s < PERIOD_S:
                    self._due_s = min(self._due_s, seen.began_s + PERIOD_S)
                    continue
                found.append((logger, event, seen.level, seen.suppressed))
                del self._seen[logger, event]
        return found
