# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing, and not by compaction.

Compaction leaves holes below the cleaner's checkpoint. Where no cleaner has noted how far it came, it may have been
in every segment but the newest.
"""

from audit.checks.base import FOUND_COLUMNS, Check, by_file, format_message, lookup, ranges_where
from audit.facts.facts import Facts


def _query(facts: Facts) -> str:
    return by_file(_inside(facts), _across(facts), _at_the_start(facts))


def _inside(facts: Facts) -> str:
    """Those within a file; the checkpoint is asked anew, for a cleaner may have been there while the log was read."""
    explained = f"coalesce(at_offset <= {lookup(facts.inventory.cleaned_to)}, false)"
    return f"select {FOUND_COLUMNS} from sightings where check = 'offset_gap' and not {explained}"


def _across(facts: Facts) -> str:
    message = format_message("offsets %s to %s are missing", "expected_offset", "first_base_offset - 1")
    lost = f"first_base_offset > expected_offset and first_base_offset > {lookup(facts.inventory.cleaned_to)}"
    return ranges_where(lost, message)


def _at_the_start(facts: Facts) -> str:
    """The first segment keeps its name when it is compacted, so a log whose first file starts later has lost one.

    Compaction may have emptied that file, and more behind it, as far as it has been.
    """
    start = f"coalesce({lookup(facts.inventory.log_start)}, 0)"
    oldest = f"coalesce({lookup(facts.inventory.oldest_segment)}, segment)"
    no_file = ranges_where(
        f"number = 1 and {oldest} > {start}",
        format_message("the log starts at offset %s, and should at %s", oldest, start),
    )
    cleaned_to = f"coalesce({lookup(facts.inventory.cleaned_to)}, 0)"
    lost = f"first_base_offset > {start} and first_base_offset > {cleaned_to}"
    no_batch = ranges_where(
        f"number = 1 and {oldest} <= {start} and {lost}",
        format_message("offsets %s to %s are missing", start, "first_base_offset - 1"),
    )
    return f"{no_file} union all {no_batch}"


CHECK = Check(
    name="offset_gap",
    severity="error",
    about="Offsets are missing where compaction has not been: records were lost.",
    todo=(
        "See groupkeeper log check for this partition, and compare with a backup; possibly-older.csv "
        "of a repair names the offsets."
    ),
    query=_query,
)
