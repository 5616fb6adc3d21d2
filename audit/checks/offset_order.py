# SPDX-License-Identifier: Apache-2.0
"""Offsets that go back."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, by_file, sighted
from audit.checks.ranges import between
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    across = between(
        facts,
        "first_base_offset < earlier_base_offset",
        "'offset '", "first_base_offset", "' follows a file that starts at '", "earlier_base_offset",
    )  # fmt: skip
    return by_file(sighted("offset_order")(facts).unionByName(across))


CHECK = Check(
    name="offset_order",
    severity="error",
    about="A batch starts at a lower offset than the one before it.",
    find=_find,
)
