# SPDX-License-Identifier: Apache-2.0
"""The check for leader epochs that go back."""

from audit.checks.base import Check, message_sql, sightings_and_ranges_query

CHECK = Check(
    name="leader_epoch_back",
    severity="error",
    about="A former leader wrote after its successor: there were two leaders.",
    todo=(
        "See that only one node writes to this directory, and that no former host has started its copy again."
    ),
    query=lambda _: sightings_and_ranges_query(
        "leader_epoch_back",
        "first_epoch >= 0 and first_epoch < earlier_epoch",
        message_sql("leader epoch %s after %s", "first_epoch", "earlier_epoch"),
    ),
)
