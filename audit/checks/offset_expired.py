# SPDX-License-Identifier: Apache-2.0
"""Offsets that should have expired."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import Check, Sql, by_partition, joined, quoted
from audit.checks.owners import owned_offsets, retention_over, with_expiry
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    limit = retention_over(facts)
    own_limit = facts.options.as_of_ms - 2 * facts.options.limits.offsets_retention_check_interval_ms
    expired = F.coalesce(F.col("expire_timestamp") <= own_limit, F.col("counts_from") <= limit)
    rows = with_expiry(owned_offsets(facts)).where(expired)
    message = joined(
        "the offset of group ", quoted("group"), " for ", Sql("topic"), "-", Sql("topic_partition"),
        " should have expired",
    )  # fmt: skip
    return by_partition(rows, message)


CHECK = Check(
    name="offset_expired",
    severity="warning",
    about="An offset is past its retention and has no tombstone: expiry does not run, or does not get through.",
    find=_find,
)
