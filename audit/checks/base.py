# SPDX-License-Identifier: Apache-2.0
"""What a check is, and the shapes that several of them share."""

from collections.abc import Callable
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.facts import Facts
from audit.options import Severity

FOUND_COLUMNS: Final = ("partition", "file", "position", "count", "message")
"""What a check's query gives: a row for each partition (and file) where there is something to tell."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the log. `about` is a sentence for people; `find` gives rows with the columns of FOUND_COLUMNS."""

    name: str
    severity: Severity
    about: str
    find: Callable[[Facts], DataFrame]


class Sql(str):
    """An expression in SQL. Text rather than a Column: each step of building a Column is a call into the JVM."""

    __slots__ = ()


def sighted(check: str) -> Callable[[Facts], DataFrame]:
    """For a check whose rows the fold has seen on its way: one finding for each file."""
    return lambda facts: facts.sightings.where(f"check = '{check}'").select(*FOUND_COLUMNS)


def differing(kind: str) -> Callable[[Facts], DataFrame]:
    """For a check that compares with a running cluster: one finding for each partition, if there was one to ask."""

    def find(facts: Facts) -> DataFrame:
        if facts.differences is None:
            return nothing(facts)
        return by_partition(facts.differences.where(f"kind = '{kind}'"), Sql("message"))

    return find


def by_file(found: DataFrame) -> DataFrame:
    """Rows of FOUND_COLUMNS as one for each file: counts together, the first one's place and message."""
    first = F.expr("min(struct(position, message))").alias("first")
    merged = found.groupBy("partition", "file").agg(F.expr("sum(count)").alias("count"), first)
    return merged.selectExpr("partition", "file", "first.position", "count", "first.message")


def by_partition(rows: DataFrame, message: Sql, *, count: str = "1") -> DataFrame:
    """Rows with partition, file and position as one of FOUND_COLUMNS for each partition, which tells of the first."""
    first = F.expr(f"min(struct(file, position, {message} as message))").alias("first")
    merged = rows.groupBy("partition").agg(F.expr(f"cast(sum({count}) as long)").alias("count"), first)
    return merged.selectExpr("partition", "first.file", "first.position", "count", "first.message")


def quoted(name: str) -> Sql:
    """A column of names in quotation marks, for a message."""
    return Sql(f"concat('\\'', {name}, '\\'')")


def joined(*parts: str) -> Sql:
    """Text and Sql, one behind the other; what is null is left out."""
    return Sql(f"concat({', '.join(map(_piece, parts))})")


def _piece(part: str) -> str:
    if isinstance(part, Sql):
        return f"coalesce(cast({part} as string), '')"
    escaped = part.replace("'", "\\'")
    return f"'{escaped}'"


def nothing(facts: Facts) -> DataFrame:
    """No finding: there is nothing to ask."""
    return facts.sightings.where("false").select(*FOUND_COLUMNS)
