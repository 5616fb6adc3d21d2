# SPDX-License-Identifier: Apache-2.0
"""The structure of a check, and the queries that several checks share, all in Spark's SQL."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from audit.facts.log_facts import Facts
from audit.options import Severity

FOUND_COLUMNS: Final = "partition, file, position, count, message"
"""The columns of a check's query: a row for each partition (and file) in which there is something to report."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A query on the log. `about` explains a finding to people, and `todo` what to do about it.

    `query` is SQL on the tables of Facts, which gives rows with FOUND_COLUMNS; "" if there is nothing to query.
    """

    name: str
    severity: Severity
    about: str
    todo: str
    query: Callable[[Facts], str]


def sightings_query(check: str) -> Callable[[Facts], str]:
    """Return the query of a check whose rows the fold has seen while reading: one finding for each file."""
    return lambda _: _sightings(check)


def _sightings(check: str) -> str:
    return f"select {FOUND_COLUMNS} from sightings where check = '{check}'"


def matching_ranges_query(where: str, message: str) -> str:
    """Return a query with one finding for each range that meets `where`, mostly a comparison with the range before."""
    return f"select partition, file, position, 1L as count, {message} as message from ranges where {where}"


def sightings_and_ranges_query(check: str, where: str, message: str) -> str:
    """Return the query of a check that the fold makes within each range, and the condition `where` between ranges."""
    return merge_by_file_sql(_sightings(check), matching_ranges_query(where, message))


def differences_query(kind: str) -> Callable[[Facts], str]:
    """Return the query of a check that compares the log with another state, if requested: one finding per partition."""
    rows = f"select * from differences where kind = '{kind}'"
    return lambda facts: "" if facts.differences is None else merge_by_partition_sql(rows, "message")


def merge_by_file_sql(*queries: str) -> str:
    """Return a query that merges rows of FOUND_COLUMNS into one per file: sum of counts, first place and message."""
    rows = " union all ".join(f"select {FOUND_COLUMNS} from ({query})" for query in queries)
    return (
        "select partition, file, first.position, count, first.message from ("
        "select partition, file, sum(count) as count, min(struct(position, message)) as first"
        f" from ({rows}) group by partition, file)"
    )


def merge_by_partition_sql(rows: str, message: str, *, count: str = "1") -> str:
    """Return a query that merges the rows of the query `rows` into one per partition: sum of counts, first message.

    `rows` has the columns partition, file and position.
    """
    return (
        "select partition, first.file, first.position, count, first.message from ("
        f"select partition, sum({count}) as count, min(struct(file, position, {message} as message)) as first"
        f" from ({rows}) group by partition)"
    )


def quote_name_in_message_sql(name: str) -> str:
    """Return the expression of a column of names that puts each name in quotation marks, for a message."""
    return f"concat('\\'', {name}, '\\'')"


def message_sql(text: str, *values: str) -> str:
    """Return the expression of a message: `text` with the next of `values` for each %s; null becomes empty."""
    strings = (f"coalesce(cast({value} as string), '')" for value in values)
    return f"format_string({', '.join([literal_sql(text), *strings])})"


def literal_sql(text: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def partition_value_sql(values: Mapping[int, int]) -> str:
    """Return the expression of the value for the row's `partition`, which is null for a partition without a value."""
    pairs = ", ".join(f"{partition}, {value}L" for partition, value in values.items())
    return f"element_at(map({pairs}), partition)" if values else "cast(null as long)"
