# SPDX-License-Identifier: Apache-2.0
"""The check for generations that went back."""

from audit.checks.base import Check, merge_by_partition_sql, message_sql, quote_name_in_message_sql
from audit.facts.log_facts import Facts


def _query(_: Facts) -> str:
    return merge_by_partition_sql(
        "select * except (file), back.file, back.position from groups where backwards > 0",
        message_sql("group %s: %s", quote_name_in_message_sql("group"), "back.detail"),
        count="backwards",
    )


CHECK = Check(
    name="generation_back",
    severity="error",
    about="A group was stored with a lower generation than before, and had not been deleted between.",
    todo=(
        "Two nodes may have served this group from two copies of the log: see that only one runs, "
        "and restart the group's members."
    ),
    query=_query,
)
