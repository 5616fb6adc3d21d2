# SPDX-License-Identifier: Apache-2.0
"""The check for offsets of groups that are not stored."""

from audit.checks.base import (
    Check,
    literal_sql,
    merge_by_partition_sql,
    message_sql,
    quote_name_in_message_sql,
)
from audit.checks.offset_group_joins import OWNED
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    end_groups = ", ".join(literal_sql(group) for group in sorted(facts.options.end_groups))
    is_end_group = f"group in ({end_groups})" if end_groups else "false"
    rows = f"""
        select *, at.file, at.position from (
            select partition, group, min(struct(file, position)) as at, count(*) as offsets
            from ({OWNED}) where state is null and not {is_end_group} group by partition, group
        )
    """
    message = message_sql(
        "group %s has %s offsets, and is not stored itself", quote_name_in_message_sql("group"), "offsets"
    )
    return merge_by_partition_sql(rows, message)


CHECK = Check(
    name="offsets_without_group",
    severity="info",
    about="Offsets belong to no stored group and no end group: a client commits without joining, or the group was "
    "deleted.",
    todo="Nothing, if you know who commits without joining. Offsets that are not used expire by themselves.",
    query=_query,
)
