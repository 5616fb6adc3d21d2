# SPDX-License-Identifier: Apache-2.0
"""Parses times and durations as kafka-consumer-groups.sh takes them, and some that are shorter to write."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d{1,9})D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d{1,9})H)?(?:(?P<minutes>[-+]?\d{1,9})M)?"
    r"(?:(?P<seconds>[-+]?\d{1,9}(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_SHORT: Final = re.compile(r"(\d{1,9})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_datetime(text: str) -> int:
    """Parse a time to ms since 1970: 2026-11-22T10:30:00.000, with Z or an offset such as +01:00, else in UTC.

    Accepts what org.apache.kafka.common.utils.Utils.getDateTime accepts, and a date alone or a time without fractions
    as well. Raises ValueError for any other text.
    """
    moment = datetime.fromisoformat(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def parse_duration(text: str) -> int:
    """Parse a duration to ms: PnDTnHnMnS as java.time.Duration.parse reads it, or a number with s, m, h, d or w.

    Raises ValueError for any other text, and OverflowError for a duration that is too long.
    """
    short = _SHORT.fullmatch(text)
    if short is not None:
        return timedelta(**{_UNITS[short[2]]: int(short[1])}) // _MILLISECOND
    match = _DURATION.fullmatch(text)
    parts = match.groupdict() if match is not None else {}
    given = {unit: parts[unit] for unit in ("days", "hours", "minutes", "seconds") if parts.get(unit)}
    if not given or (parts["time"] or "").upper() == "T":
        raise ValueError("not a duration")
    length = timedelta(**{unit: float(number.replace(",", ".")) for unit, number in given.items()})
    return (-length if parts["sign"] == "-" else length) // _MILLISECOND
