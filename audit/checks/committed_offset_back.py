# SPDX-License-Identifier: Apache-2.0
"""The check for committed offsets that went back."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.checks.offset_group_joins import NO_LEDGER
from audit.facts.log_facts import Facts


def _query(_: Facts) -> str:
    return merge_by_partition_sql(
        f"select * except (file), back.file, back.position from offsets where backwards > 0 and {NO_LEDGER}",
        message_sql(
            "group %s committed less for %s-%s: %s",
            quote_name_in_message_sql("group"),
            "topic",
            "topic_partition",
            "back.detail",
        ),
        count="backwards",
    )


CHECK = Check(
    name="committed_offset_back",
    severity="warning",
    about="A group committed a lower offset than before: it was reset on purpose, or it reads records again.",
    todo=(
        "If these groups were not reset on purpose, look for consumers that commit from two places, or that "
        "seek back after a restart."
    ),
    query=_query,
)
