# SPDX-License-Identifier: Apache-2.0
"""The checks for groups in partitions where no coordinator searches for them, by the cause."""

from collections.abc import Callable
from typing import Final

from audit.checks.base import Check, merge_by_partition_sql
from audit.facts.log_facts import Facts
from audit.facts.misplaced import MisplacementCause


def _of_kind(kind: MisplacementCause) -> Callable[[Facts], str]:
    rows = f"select * from misplaced where kind = '{kind.value}'"
    return lambda facts: (
        "" if facts.misplaced is None else merge_by_partition_sql(rows, "message", count="count")
    )


CHECKS: Final = (
    Check(
        name="directory_misplaced",
        severity="error",
        about=(
            "All groups of a partition belong to one other partition: its directory seems to be the "
            "directory of that partition."
        ),
        todo="Stop the node, put each partition's directory back under its own number, and start the node again.",
        query=_of_kind(MisplacementCause.DIRECTORY),
    ),
    Check(
        name="topic_has_grown",
        severity="warning",
        about=(
            "Groups are in the partitions that they were placed in when the topic had fewer "
            "partitions: no coordinator looks for them there."
        ),
        todo=(
            "Kafka does not find these groups either once __consumer_offsets got more partitions. If it did not get "
            "any, check offsets.topic.num.partitions, or give --partitions."
        ),
        query=_of_kind(MisplacementCause.GROWN),
    ),
    Check(
        name="wrong_partition",
        severity="error",
        about="A group has records in a partition where no coordinator looks for it.",
        todo=(
            "The number of partitions differs from when this was written: check "
            "offsets.topic.num.partitions, or give --partitions."
        ),
        query=_of_kind(MisplacementCause.GROUPS),
    ),
)
