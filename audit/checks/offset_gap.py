# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing, and not by compaction.

Compaction leaves holes below the cleaner's checkpoint. Where no cleaner has noted how far it came, it may have been
in every segment but the newest. What a broker has copied from another replica may have been compacted there: in what
it wrote a hole proves nothing, nor does the loss of a first segment, which retention takes.
"""

from typing import Final

from audit.checks.base import FOUND_COLUMNS, Check, by_file, format_message, lookup, ranges_where
from audit.facts.facts import Facts


def _lost(facts: Facts) -> str:
    written = _written_here(facts)
    return by_file(
        _inside(facts, f"at_offset > {written}"),
        _across(facts, f"first_base_offset > {written}"),
        _at_the_start(facts, written),
    )


def _copied(facts: Facts) -> str:
    written = _written_here(facts)
    return by_file(
        _inside(facts, f"coalesce(at_offset <= {written}, true)"),
        _across(facts, f"coalesce(first_base_offset <= {written}, true)"),
    )


def _inside(facts: Facts, where: str) -> str:
    """Those within a file; the checkpoint is asked anew, for a cleaner may have been there while the log was read."""
    explained = f"coalesce(at_offset <= {lookup(facts.inventory.cleaned_to)}, false)"
    return (
        f"select {FOUND_COLUMNS} from sightings where check = 'offset_gap' and not {explained} and ({where})"
    )


def _across(facts: Facts, where: str) -> str:
    """Those between two ranges, and before the first batch of a log whose first segment is there."""
    first = f"greatest({_log_start(facts)}, {_oldest_segment(facts)})"
    expected = f"if(number = 1, {first}, expected_offset)"
    cleaned_to = f"coalesce({lookup(facts.inventory.cleaned_to)}, 0)"
    message = format_message("offsets %s to %s are missing", expected, "first_base_offset - 1")
    return ranges_where(
        f"first_base_offset > {expected} and first_base_offset > {cleaned_to} and ({where})", message
    )


def _at_the_start(facts: Facts, written: str) -> str:
    """A log whose first segment is not there: a cleaner keeps that file under its name, even with nothing in it."""
    start, oldest = _log_start(facts), _oldest_segment(facts)
    message = format_message("the log starts at offset %s, and should at %s", oldest, start)
    return ranges_where(f"number = 1 and {oldest} > {start} and {oldest} > {written}", message)


def _written_here(facts: Facts) -> str:
    """The offset from which on a node wrote the partition, null where a broker wrote it all."""
    return lookup(facts.inventory.written_from)


def _log_start(facts: Facts) -> str:
    return f"coalesce({lookup(facts.inventory.log_start)}, 0)"


def _oldest_segment(facts: Facts) -> str:
    return f"coalesce({lookup(facts.inventory.oldest_segment)}, segment)"


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
        about="Offsets are missing in what a broker wrote, where its own cleaner has not been.",
        todo=(
            "A partition that was moved to this broker has such gaps, as it was compacted where it came from. If it "
            "never moved, compare with another replica."
        ),
        query=_copied,
    ),
)
