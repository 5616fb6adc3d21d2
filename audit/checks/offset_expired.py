# SPDX-License-Identifier: Apache-2.0
"""The check for offsets that should have expired."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.checks.offset_group_joins import EXPIRING, overdue_expiry_cutoff_ms
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    limits = facts.options.limits
    own_limit = facts.options.as_of_ms - 2 * limits.offsets_retention_check_interval_ms
    rows = f"""
        select * from ({EXPIRING})
        where coalesce(expire_timestamp <= {own_limit}, counts_from <= {overdue_expiry_cutoff_ms(facts)})
    """
    message = message_sql(
        "the offset of group %s for %s-%s should have expired",
        quote_name_in_message_sql("group"),
        "topic",
        "topic_partition",
    )
    return merge_by_partition_sql(rows, message)


CHECK = Check(
    name="offset_expired",
    severity="warning",
    about="An offset is past its retention and has no tombstone: expiry does not run, or does not get through.",
    todo=(
        "Look for the job expire_offsets in groupkeeper_job_runs_total. If the retention is another: "
        "--limit offsets_retention_ms=N."
    ),
    query=_query,
)
