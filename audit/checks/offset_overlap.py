# SPDX-License-Identifier: Apache-2.0
"""Offsets that are there twice."""

from pyspark.sql import DataFrame

from audit.checks.base import Check, by_file, sighted
from audit.checks.ranges import between
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    across = between(
        facts,
        "first_base_offset < expected_offset and first_base_offset >= earlier_base_offset",
        "'offset '", "first_base_offset", "' follows, where the file before goes up to '", "expected_offset - 1",
    )  # fmt: skip
    return by_file(sighted("offset_overlap")(facts).unionByName(across))


CHECK = Check(
    name="offset_overlap",
    severity="error",
    about="Two batches have the same offsets: one was written twice, or two leaders wrote.",
    find=_find,
)
