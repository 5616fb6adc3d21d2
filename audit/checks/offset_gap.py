# SPDX-License-Identifier: Apache-2.0
"""The checks for offsets that are missing, and not by compaction.

Compaction leaves holes below the cleaner's checkpoint. If no cleaner has noted its progress, it may have compacted
every segment except the newest. Records that a broker has copied from another replica may have been compacted at that
replica: in data that a broker wrote, a hole proves nothing, nor does the loss of a first segment, which retention
deletes.
"""

from typing import Final

from audit.checks.base import (
    FOUND_COLUMNS,
    Check,
    matching_ranges_query,
    merge_by_file_sql,
    message_sql,
    partition_value_sql,
)
from audit.facts.log_facts import Facts


def _lost(facts: Facts) -> str:
    written = _written_here(facts)
    return merge_by_file_sql(
        _inside(facts, f"at_offset > {written}"),
        _across(facts, f"first_base_offset > {written}"),
        _at_the_start(facts, written),
    )


def _copied(facts: Facts) -> str:
    written = _written_here(facts)
    return merge_by_file_sql(
        _inside(facts, f"coalesce(at_offset <= {written}, true)"),
        _across(facts, f"coalesce(first_base_offset <= {written}, true)"),
    )


def _inside(facts: Facts, where: str) -> str:
    """Return a query for gaps within a file, by the newest checkpoint, as a cleaner may have run during the reading."""
    explained = f"coalesce(at_offset <= {partition_value_sql(facts.inventory.cleaned_to)}, false)"
    return (
        f"select {FOUND_COLUMNS} from sightings where check = 'offset_gap' and not {explained} and ({where})"
    )


def _across(facts: Facts, where: str) -> str:
    """Return a query for gaps between ranges, and before the first batch of a log that has its first segment."""
    first = f"greatest({_log_start(facts)}, {_oldest_segment(facts)})"
    expected = f"if(number = 1, {first}, expected_offset)"
    cleaned_to = f"coalesce({partition_value_sql(facts.inventory.cleaned_to)}, 0)"
    message = message_sql("offsets %s to %s are missing", expected, "first_base_offset - 1")
    return matching_ranges_query(
        f"first_base_offset > {expected} and first_base_offset > {cleaned_to} and ({where})", message
    )


def _at_the_start(facts: Facts, written: str) -> str:
    """Return a query for logs without their first segment: a cleaner keeps that file under its name, even if empty."""
    start, oldest = _log_start(facts), _oldest_segment(facts)
    message = message_sql("the log starts at offset %s, and should at %s", oldest, start)
    return matching_ranges_query(f"number = 1 and {oldest} > {start} and {oldest} > {written}", message)


def _written_here(facts: Facts) -> str:
    """Return the offset from which on a node wrote the partition; null if a broker wrote all of it."""
    return partition_value_sql(facts.inventory.written_from)


def _log_start(facts: Facts) -> str:
    return f"coalesce({partition_value_sql(facts.inventory.log_start)}, 0)"


def _oldest_segment(facts: Facts) -> str:
    return f"coalesce({partition_value_sql(facts.inventory.oldest_segment)}, segment)"


CHECKS: Final = (
    Check(
        name="offset_gap",
        severity="error",
        about="Offsets are missing where compaction has not been: records were lost.",
        todo=(
            "See groupkeeper log check for this partition, and compare with a backup; possibly-older.csv "
            "of a repair names the offsets."
        ),
        query=_lost,
    ),
    Check(
        name="replica_gap",
        severity="info",
        about="Offsets are missing in records that a broker wrote, where its own cleaner has not been.",
        todo=(
            "A partition that was moved to this broker has such gaps, as it was compacted where it came from. If it "
            "never moved, compare with another replica."
        ),
        query=_copied,
    ),
)
