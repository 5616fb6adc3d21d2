# SPDX-License-Identifier: Apache-2.0
"""Offsets that are there twice."""

from audit.checks.base import Check, between, by_file, said, sighted
from audit.facts import Facts


def _query(facts: Facts) -> str:
    message = said(
        "offset %s follows, where the file before goes up to %s", "first_base_offset", "expected_offset - 1"
    )
    across = between(
        "first_base_offset < expected_offset and first_base_offset >= earlier_base_offset", message
    )
    return by_file(sighted("offset_overlap")(facts), across)


CHECK = Check(
    name="offset_overlap",
    severity="error",
    about="Two batches have the same offsets: one was written twice, or two leaders wrote.",
    query=_query,
)
