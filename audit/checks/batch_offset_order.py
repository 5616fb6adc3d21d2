# SPDX-License-Identifier: Apache-2.0
"""The check for batches of the log that start at a lower offset than the batch before."""

from audit.checks.base import Check, message_sql, sightings_and_ranges_query

CHECK = Check(
    name="offset_order",
    severity="error",
    about="A batch starts at a lower offset than the one before it.",
    todo=(
        "Stop the node and run groupkeeper log check --partition P, then groupkeeper log repair "
        "--partition P, which says what can be kept."
    ),
    query=lambda _: sightings_and_ranges_query(
        "offset_order",
        "first_base_offset < earlier_base_offset",
        message_sql("offset %s follows a file that starts at %s", "first_base_offset", "earlier_base_offset"),
    ),
)
