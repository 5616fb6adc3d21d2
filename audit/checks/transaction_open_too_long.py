# SPDX-License-Identifier: Apache-2.0
"""The check for transactions that were never ended."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    # A transaction that is open at the end of a range is open behind its last marker there, and until a marker in a
    # later one.
    now_ms = facts.options.as_of_ms
    rows = f"""
        select partition, producer_id, first.open_since, first.file, first.open_position as position from (
            select partition, producer_id, min(struct(open_since, file, open_position)) as first from (
                select *, max(if(has_marker, here, null)) over (partition by partition, producer_id) as last_marker
                from (select *, struct(segment, position) as here from transactions)
            )
            where open_since is not null and (last_marker is null or here >= last_marker)
            group by partition, producer_id
        )
        where {now_ms} - first.open_since > {facts.options.limits.transaction_max_timeout_ms}
    """
    message = message_sql(
        "producer %s has had a transaction open for %s s", "producer_id", f"({now_ms} - open_since) div 1000"
    )
    return merge_by_partition_sql(rows, message)


CHECK = Check(
    name="transaction_open_too_long",
    severity="warning",
    about=(
        "A transaction has been open for longer than transaction.max.timeout.ms: its group's "
        "offsets wait for it."
    ),
    todo=(
        "If its producer is gone, end the transaction on its cluster (kafka-transactions.sh "
        "--abort); here its offsets are not shown and nothing waits for it."
    ),
    query=_query,
)
