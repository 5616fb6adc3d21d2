# SPDX-License-Identifier: Apache-2.0
"""The check for groups that have been empty for longer than their offsets are kept."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.checks.offset_group_joins import overdue_expiry_cutoff_ms
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    now_ms = facts.options.as_of_ms
    rows = f"""
        select *, last_position as position from live_groups
        left anti join (select partition, group from live_offsets where expire_timestamp > {now_ms}) kept
            using (partition, group)
        where state = 'Empty' and state_timestamp >= 0 and state_timestamp <= {overdue_expiry_cutoff_ms(facts)}
    """
    hours = f"({now_ms} - state_timestamp) div 3600000"
    return merge_by_partition_sql(
        rows, message_sql("group %s has been empty for %s hours", quote_name_in_message_sql("group"), hours)
    )


CHECK = Check(
    name="group_empty_too_long",
    severity="warning",
    about="A group has had no member for longer than offsets.retention.minutes, and is still there.",
    todo=(
        "Look for the job expire_offsets in groupkeeper_job_runs_total, and for the wall clock "
        "jumped in the node's log."
    ),
    query=_query,
)
