# SPDX-License-Identifier: Apache-2.0
"""The check for keys that compaction left twice."""

from audit.checks.base import (
    Check,
    merge_by_partition_sql,
    message_sql,
    partition_value_sql,
    quote_name_in_message_sql,
)
from audit.facts.log_facts import Facts


def _query(facts: Facts) -> str:
    columns = "partition, group, file, last_position as position, cleaned"
    cleaned_to = partition_value_sql(facts.inventory.cleaner_checkpoint)
    return merge_by_partition_sql(
        f"select * from (select {columns} from offsets union all select {columns} from groups)"
        f" where cleaned > 1 and {cleaned_to} is not null",
        message_sql(
            "group %s has a key %s times below the cleaner's checkpoint",
            quote_name_in_message_sql("group"),
            "cleaned",
        ),
    )


CHECK = Check(
    name="compaction_duplicate",
    severity="error",
    about=(
        "A key is in the compacted part more than once: the checkpoint says that this part was "
        "compacted, but it was not."
    ),
    todo=(
        "Keep a copy of this partition's directory, set log.cleaner.enable=false, and report it: "
        "this is a bug, or the files were changed from outside."
    ),
    query=_query,
)
