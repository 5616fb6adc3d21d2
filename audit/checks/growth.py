# SPDX-License-Identifier: Apache-2.0
"""The check for growth since the last audit."""

from audit.checks.base import Check, message_sql
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    if not facts.previous_runs:
        return ""
    before, limits = facts.previous_runs[-1].bytes, facts.options.limits
    message = message_sql("the log has %s bytes; the last audit found %s", "bytes", str(before))
    return f"""
        select null as partition, cast(null as string) as file, null as position, 1 as count, {message} as message
        from (select sum(bytes) as bytes from ranges)
        where bytes - {before} > {limits.growth_bytes} and bytes > {limits.growth_factor} * {before}
    """


CHECK = Check(
    name="growth",
    severity="warning",
    about=(
        "The log has grown much since the last audit: compaction or expiry does not keep up, or a "
        "client is out of control."
    ),
    todo=(
        "Compare the pictures with those of the last audit, and ask the groups that commit most "
        "whether they must commit so often."
    ),
    query=_query,
)
