# SPDX-License-Identifier: Apache-2.0
"""The check for state that an earlier audit found, and that is gone or older now.

Only a newer record may take the place of a key's newest record. The key can disappear altogether if a tombstone
followed, and compaction has dropped the tombstone since. Compaction waits delete.retention.ms at least before it does
so: after that time, absence proves nothing.
"""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.facts.log_facts import Facts
from audit.facts.state import KEY


def _query(facts: Facts) -> str:
    if facts.previous_offsets is None or not facts.previous_runs:
        return ""
    elapsed_ms = facts.options.as_of_ms - facts.previous_runs[-1].as_of_ms
    gone = "false" if elapsed_ms >= facts.options.limits.delete_retention_ms else "now_at is null"
    rows = f"""
        select *, last_position as position from previous_offsets left join (
            select {", ".join(KEY)}, log_offset as now_at, committed_offset as now_committed, tombstone as now_gone
            from offsets
        ) using ({", ".join(KEY)})
        where {gone} or now_at < log_offset
            or (now_at = log_offset and (now_gone or now_committed != committed_offset))
    """
    now = "if(now_at is null, 'nothing', concat('another record counts, at ', now_at))"
    message = message_sql(
        "group %s had %s for %s-%s (offset %s of the log); now %s",
        quote_name_in_message_sql("group"), "committed_offset", "topic", "topic_partition", "log_offset", now,
    )  # fmt: skip
    return merge_by_partition_sql(rows, message)


CHECK = Check(
    name="lost_since_last_audit",
    severity="error",
    about=(
        "An offset that a group had committed at the last audit is no longer in the log, and "
        "neither is a newer one."
    ),
    todo=(
        "If the directory was restored from a backup, nothing. If not, restore the offsets with "
        "groupkeeper groups set-offsets, and look for the cause."
    ),
    query=_query,
)
