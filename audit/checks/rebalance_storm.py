# SPDX-License-Identifier: Apache-2.0
"""The check for groups that rebalance again and again."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    rows = f"""
        select partition, group, worst.rebalances, worst.at.file, worst.at.position from (
            select partition, group, max(struct(rebalances, hour_ms, at)) as worst from (
                select partition, group, hour_ms, sum(count) as rebalances, min(struct(file, position)) as at
                from rebalances group by partition, group, hour_ms
            )
            where rebalances > {facts.options.limits.rebalances_per_hour} group by partition, group
        )
    """
    return merge_by_partition_sql(
        rows,
        message_sql(
            "group %s had %s generations within an hour", quote_name_in_message_sql("group"), "rebalances"
        ),
    )


CHECK = Check(
    name="rebalance_storm",
    severity="warning",
    about="A group goes through generation after generation: its members spend their time on rebalancing.",
    todo=(
        "Look at these groups' members: restarts, session.timeout.ms, and deployments that restart "
        "all at once; see groupkeeper_rebalances_total by cause."
    ),
    query=_query,
)
