# SPDX-License-Identifier: Apache-2.0
"""State that an earlier audit saw, and that is gone or older now.

The newest record of a key may only be followed by newer ones. It can go altogether when a tombstone followed that
compaction has dropped since, which takes delete.retention.ms at least: after that, absence says nothing.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, nothing, quoted
from audit.facts import Facts
from audit.state import KEY


def _find(facts: Facts) -> DataFrame:
    if facts.previous_offsets is None or not facts.previous_runs:
        return nothing(facts)
    now = facts.offsets.select(
        *KEY,
        F.col("log_offset").alias("now_at"),
        F.col("committed_offset").alias("now_committed"),
        "tombstone",
    )
    elapsed_ms = facts.options.as_of_ms - facts.previous_runs[-1].as_of_ms
    gone = "false" if elapsed_ms >= facts.options.limits.delete_retention_ms else "now_at is null"
    changed = "now_at = log_offset and (tombstone or now_committed != committed_offset)"
    rows = facts.previous_offsets.join(now, list(KEY), "left").where(
        f"{gone} or now_at < log_offset or ({changed})"
    )
    message = joined(
        "group ", quoted("group"), " had ", Sql("committed_offset"), " for ", Sql("topic"), "-",
        Sql("topic_partition"), " (offset ", Sql("log_offset"), " of the log); now ",
        Sql("case when now_at is null then 'nothing' else concat('another record counts, at ', now_at) end"),
    )  # fmt: skip
    return by_partition(rows.withColumnRenamed("last_position", "position"), message)


CHECK = Check(
    name="lost_since_last_audit",
    severity="error",
    about="What a group had committed at the last audit is not in the log any more, and nothing newer is.",
    find=_find,
)
