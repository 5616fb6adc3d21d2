# SPDX-License-Identifier: Apache-2.0
"""The checks, one module each. A new one is a new file with a CHECK in it: nothing else has to know."""

import pkgutil
from functools import reduce
from importlib import import_module
from typing import Final

from pyspark.sql import DataFrame

from audit.checks.base import Check
from audit.facts import Facts

FINDING_COLUMNS: Final = ("check", "severity", "partition", "file", "position", "count", "message")


def all_checks() -> list[Check]:
    """Every check, by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return sorted(
        (module.CHECK for module in modules if hasattr(module, "CHECK")), key=lambda check: check.name
    )


def findings(facts: Facts) -> DataFrame:
    """What all checks find, with FINDING_COLUMNS: one job for all of them."""
    return reduce(DataFrame.unionAll, (_find(check, facts) for check in all_checks()))


def _find(check: Check, facts: Facts) -> DataFrame:
    return check.find(facts).selectExpr(
        f"'{check.name}' as check",
        f"'{check.severity}' as severity",
        "cast(partition as int)",
        "file",
        "cast(position as long)",
        "cast(count as long)",
        "message",
    )
