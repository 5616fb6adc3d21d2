# SPDX-License-Identifier: Apache-2.0
"""The checks: a module each, and a table for those that have no query of their own.

A new check is a new file with a CHECK in it, or an entry of a table (CHECKS): no other code has to change.
"""

import pkgutil
from importlib import import_module
from typing import Final

from pyspark.sql import DataFrame

from audit.checks.base import Check
from audit.facts.log_facts import Facts

FINDING_COLUMNS: Final = ("check", "severity", "partition", "file", "position", "count", "message")


def all_checks() -> list[Check]:
    """Return all checks, by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    found = (getattr(module, "CHECKS", (getattr(module, "CHECK", None),)) for module in modules)
    return sorted((check for checks in found for check in checks if check), key=lambda check: check.name)


def query_findings(facts: Facts) -> DataFrame:
    """Return the findings of all checks, with FINDING_COLUMNS: one query for all of them, planned once.

    Registers the facts' tables in the session's SQL, under their names (`Facts.register_tables`).
    """
    facts.register_tables()
    asked = ((check, check.query(facts)) for check in all_checks())
    query = "\nunion all\n".join(_found(check, query) for check, query in asked if query)
    return facts.spark.sql(query).coalesce(facts.spread)


def _found(check: Check, query: str) -> str:
    return (
        f"select '{check.name}' as check, '{check.severity}' as severity, cast(partition as int) as partition, file,"
        f" cast(position as long) as position, cast(count as long) as count, message from ({query})"
    )
