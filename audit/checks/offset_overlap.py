# SPDX-License-Identifier: Apache-2.0
"""Offsets that are there twice."""

from audit.checks.base import Check, said, sighted_or_between

CHECK = Check(
    name="offset_overlap",
    severity="error",
    about="Two batches have the same offsets: one was written twice, or two leaders wrote.",
    query=lambda _: sighted_or_between(
        "offset_overlap",
        "first_base_offset < expected_offset and first_base_offset >= earlier_base_offset",
        said(
            "offset %s follows, where the file before goes up to %s",
            "first_base_offset",
            "expected_offset - 1",
        ),
    ),
)
