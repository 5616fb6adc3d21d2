# SPDX-License-Identifier: Apache-2.0
"""The check for generations that went back."""

from audit.checks.base import Check, by_partition, format_message, quoted
from audit.facts.facts import Facts


def _query(_: Facts) -> str:
    return by_partition(
        "select * except (file), back.file, back.position from groups where backwards > 0",
        format_message("group %s: %s", quoted("group"), "back.detail"),
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
