# SPDX-License-Identifier: Apache-2.0
"""The check for clocks that were set back."""

from audit.checks.base import Check, message_sql, sightings_and_ranges_query
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    message = message_sql(
        "a batch is %s s older than the one before it",
        "cast((earlier_timestamp - first_max_timestamp) / 1000 as long)",
    )
    return sightings_and_ranges_query(
        "clock_jump",
        f"first_max_timestamp >= {facts.options.since_ms}"
        f" and earlier_timestamp - first_max_timestamp > {facts.options.limits.clock_back_ms}",
        message,
    )


CHECK = Check(
    name="clock_jump",
    severity="warning",
    about="Time goes back from one batch to the next: a clock was set, and retention counts from the wrong time.",
    todo=(
        "See that NTP or chrony runs on the host; groupkeeper groups expiring lists what expires when, "
        "by the times that were written."
    ),
    query=_query,
)
