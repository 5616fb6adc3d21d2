# SPDX-License-Identifier: Apache-2.0
"""The check for members that come and go."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    rows = f"""
        select *, at.file, at.position from (
            select
                partition, group, who,
                sum(arrivals) as arrivals, max(together) as together, min(struct(file, position)) as at
            from arrivals group by partition, group, who, hour_ms
        )
        where arrivals > {facts.options.limits.arrivals_per_hour} * together
    """
    message = message_sql(
        "in group %s %s came %s times within an hour",
        quote_name_in_message_sql("group"),
        quote_name_in_message_sql("who"),
        "arrivals",
    )
    return merge_by_partition_sql(rows, message)


CHECK = Check(
    name="members_flapping",
    severity="warning",
    about="A member joins under a new id again and again: it crashes, or is too slow for its session timeout.",
    todo=(
        "Look at these consumers' own logs: crashes, max.poll.interval.ms, session.timeout.ms. A "
        "group.instance.id spares a rebalance at each restart."
    ),
    query=_query,
)
