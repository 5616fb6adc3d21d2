# SPDX-License-Identifier: Apache-2.0
"""Clocks that were set back."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, by_file, sighted
from audit.checks.ranges import between
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    jump_ms = facts.options.limits.clock_back_ms
    across = between(
        facts,
        f"first_max_timestamp >= {facts.options.since_ms}"
        f" and earlier_timestamp - first_max_timestamp > {jump_ms}",
        "'a batch is '", "cast((earlier_timestamp - first_max_timestamp) / 1000 as long)",
        "' s older than the one before it'",
    )  # fmt: skip
    return by_file(sighted("clock_jump")(facts).unionByName(across))


CHECK = Check(
    name="clock_jump",
    severity="warning",
    about="Time goes back from one batch to the next: a clock was set, and retention counts from the wrong time.",
    find=_find,
)
