# SPDX-License-Identifier: Apache-2.0
"""The check for one partition that gets far more records than the others."""

from audit.checks.base import Check, message_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    limits = facts.options.limits
    message = message_sql("%s of all %s records are in this partition", "records", "total")
    return f"""
        select partition, first.file, 0 as position, 1 as count, {message} as message from (
            select partition, records, first, sum(records) over () as total from (
                select partition, sum(records) as records, min(struct(segment, file)) as first
                from ranges group by partition
            )
        )
        where records >= {limits.hot_partition_records}
            and records > {limits.hot_partition_factor} * total / {len(facts.inventory.partitions)}
    """


CHECK = Check(
    name="hot_partition",
    severity="warning",
    about="One partition has many times the records of the others, so its coordinator has most of the work.",
    todo=(
        "See which groups have most records; a group that commits after each record should commit "
        "less often. Another name places a group elsewhere."
    ),
    query=_query,
)
