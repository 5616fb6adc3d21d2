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
    """Those between two ranges, and before the first batch of a log whose first segment is there."""
    first = f"greatest({_log_start(facts)}, {_oldest_segment(facts)})"
    expected = f"if(number = 1, {first}, expected_offset)"
    cleaned_to = f"coalesce({lookup(facts.inventory.cleaned_to)}, 0)"
    message = format_message("offsets %s to %s are missing", expected, "first_base_offset - 1")
    return ranges_where(f"first_base_offset > {expected} and first_base_offset > {cleaned_to}", message)


def _at_the_start(facts: Facts) -> str:
    """A log whose first segment is not there: a cleaner keeps that file under its name, even with nothing in it."""
    start, oldest = _log_start(facts), _oldest_segment(facts)
    message = format_message("the log starts at offset %s, and should at %s", oldest, start)
    return ranges_where(f"number = 1 and {oldest} > {start}", message)


def _log_start(facts: Facts) -> str:
    return f"coalesce({lookup(facts.inventory.log_start)}, 0)"


def _oldest_segment(facts: Facts) -> str:
    return f"coalesce({lookup(facts.inventory.oldest_segment)}, segment)"


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
