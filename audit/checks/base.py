# SPDX-License-Identifier: Apache-2.0
"""What a check is, and the shapes that several of them share: all of it is Spark's SQL."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from audit.facts.facts import Facts
from audit.options import Severity

FOUND_COLUMNS: Final = "partition, file, position, count, message"
"""What a check's query gives: a row for each partition (and file) where there is something to report."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the log. `about` and `todo` are for people: what it means, and what to do then.

    `query` is SQL on the tables of Facts, which gives rows with FOUND_COLUMNS; "" where there is nothing to ask.
    """

    name: str
    severity: Severity
    about: str
    todo: str
    query: Callable[[Facts], str]


def sightings_of(check: str) -> Callable[[Facts], str]:
    """For a check whose rows the fold has seen on its way: one finding for each file."""
    return lambda _: _sightings(check)


def _sightings(check: str) -> str:
    return f"select {FOUND_COLUMNS} from sightings where check = '{check}'"


def ranges_where(where: str, message: str) -> str:
    """One finding for each range for which something is true: mostly of it and the range before it."""
    return f"select partition, file, position, 1L as count, {message} as message from ranges where {where}"


def sightings_or_ranges(check: str, where: str, message: str) -> str:
    """For what can stand within a file, where the fold has seen it, or between one range and the next."""
    return by_file(_sightings(check), ranges_where(where, message))


def differences_of(kind: str) -> Callable[[Facts], str]:
    """For a check that compares the log with something else, if that was asked for: one finding for each partition."""
    rows = f"select * from differences where kind = '{kind}'"
    return lambda facts: "" if facts.differences is None else by_partition(rows, "message")


def by_file(*queries: str) -> str:
    """Rows of FOUND_COLUMNS as one for each file: counts together, the first one's place and message."""
    rows = " union all ".join(f"select {FOUND_COLUMNS} from ({query})" for query in queries)
    return (
        "select partition, file, first.position, count, first.message from ("
        "select partition, file, sum(count) as count, min(struct(position, message)) as first"
        f" from ({rows}) group by partition, file)"
    )


def by_partition(rows: str, message: str, *, count: str = "1") -> str:
    """Rows with partition, file and position as FOUND_COLUMNS, one for each partition: the count, the first message."""
    return (
        "select partition, first.file, first.position, count, first.message from ("
        f"select partition, sum({count}) as count, min(struct(file, position, {message} as message)) as first"
        f" from ({rows}) group by partition)"
    )


def quoted(name: str) -> str:
    """A column of names in quotation marks, for a message."""
    return f"concat('\\'', {name}, '\\'')"


def format_message(text: str, *values: str) -> str:
    """Text for a message, with the value of an expression for each %s in it; what is null is left out."""
    strings = (f"coalesce(cast({value} as string), '')" for value in values)
    return f"format_string({', '.join([_literal(text), *strings])})"


def _literal(text: str) -> str:
    escaped = text.replace("'", "\\'")
    return f"'{escaped}'"


def lookup(values: Mapping[int, int]) -> str:
    """The value for the row's `partition`; null for one that is not among them."""
    pairs = ", ".join(f"{partition}, {value}L" for partition, value in values.items())
    return f"element_at(map({pairs}), partition)" if values else "cast(null as long)"
