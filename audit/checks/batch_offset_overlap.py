# SPDX-License-Identifier: Apache-2.0
"""The check for batches of the log that have offsets in common."""

from audit.checks.base import Check, message_sql, sightings_and_ranges_query

CHECK = Check(
    name="offset_overlap",
    severity="error",
    about="Two batches have the same offsets: one was written twice, or two leaders wrote.",
    todo=(
        "Stop the node and run groupkeeper log check --partition P; see that no second node writes "
        "to this directory."
    ),
    query=lambda _: sightings_and_ranges_query(
        "offset_overlap",
        "first_base_offset < expected_offset and first_base_offset >= earlier_base_offset",
        message_sql(
            "offset %s follows, where the file before goes up to %s",
            "first_base_offset",
            "expected_offset - 1",
        ),
    ),
)
