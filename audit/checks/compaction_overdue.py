# SPDX-License-Identifier: Apache-2.0
"""The check for logs that should have been compacted."""

from audit.checks.base import Check, message_sql, partition_value_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    if not facts.inventory.has_checkpoint:
        return ""  # unknown without the cleaner's checkpoint
    limits = facts.options.limits
    dirty = f"segment >= coalesce({partition_value_sql(facts.inventory.cleaner_checkpoint)}, 0)"
    message = message_sql("%s of %s bytes in closed segments have not been compacted", "dirty_bytes", "bytes")
    return f"""
        select partition, first.file, 0 as position, 1 as count, {message} as message from (
            select
                partition,
                sum(bytes) as bytes,
                sum(if({dirty}, bytes, 0)) as dirty_bytes,
                max(if({dirty}, newest_timestamp, null)) as newest,
                min(if({dirty}, struct(segment, file), null)) as first
            from ranges where segment < newest_segment group by partition
        )
        where dirty_bytes / bytes > {limits.min_cleanable_dirty_ratio}
            and newest <= {facts.options.as_of_ms - limits.compaction_grace_ms}
    """


CHECK = Check(
    name="compaction_overdue",
    severity="warning",
    about="More of a log waits for compaction than min.cleanable.dirty.ratio allows: the cleaner does not run.",
    todo="Look for lines of the cleaner in the node's log, and at groupkeeper_log_uncleanable_partitions.",
    query=_query,
)
