# SPDX-License-Identifier: Apache-2.0
"""The check for tombstones that compaction could have dropped."""

from audit.checks.base import (
    Check,
    merge_by_partition_sql,
    message_sql,
    partition_value_sql,
    quote_name_in_message_sql,
)
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    # The first compaction starts the time of delete.retention.ms, and only a later one can drop the tombstone.
    limits = facts.options.limits
    oldest = facts.options.as_of_ms - 2 * limits.delete_retention_ms - limits.compaction_grace_ms
    columns = "partition, group, file, last_position as position, log_offset, timestamp, tombstone"
    cleaned_to = partition_value_sql(facts.inventory.cleaner_checkpoint)
    rows = f"""
        select * from (select {columns} from offsets union all select {columns} from groups)
        where tombstone and timestamp <= {oldest} and log_offset < {cleaned_to}
    """
    return merge_by_partition_sql(
        rows,
        message_sql(
            "a tombstone of group %s is past delete.retention.ms", quote_name_in_message_sql("group")
        ),
    )


CHECK = Check(
    name="tombstone_overdue",
    severity="info",
    about=(
        "Compacted tombstones are older than delete.retention.ms: they are removed when the log is "
        "compacted again."
    ),
    todo="Nothing, if it was little written to. Else as compaction overdue.",
    query=_query,
)
