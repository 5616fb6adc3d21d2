# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing, and not by compaction.

Compaction leaves holes below the cleaner's checkpoint. Where no cleaner has noted how far it came, it may have been
in every segment but the newest.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from audit.checks.base import FOUND_COLUMNS, Check, by_file
from audit.checks.ranges import lookup, neighbours
from audit.facts import Facts


def _find(facts: Facts) -> DataFrame:
    return by_file(_inside(facts).unionByName(_across(facts)).unionByName(_at_the_start(facts)))


def _inside(facts: Facts) -> DataFrame:
    """Those within a file; the checkpoint is asked anew, for a cleaner may have been there while the log was read."""
    explained = F.col("at_offset") <= lookup(facts.inventory.cleaned_to)
    seen = facts.sightings.where("check = 'offset_gap'").where(~F.coalesce(explained, F.lit(False)))
    return seen.select(*FOUND_COLUMNS)


def _across(facts: Facts) -> DataFrame:
    ranges = neighbours(facts).withColumn("cleaned_to", lookup(facts.inventory.cleaned_to))
    missing = ranges.where("first_base_offset > expected_offset and first_base_offset > cleaned_to")
    return missing.select(
        "partition",
        "file",
        "position",
        F.lit(1).cast("long").alias("count"),
        F.format_string(
            "offsets %d to %d are missing", F.col("expected_offset"), F.col("first_base_offset") - 1
        ).alias("message"),
    )


def _at_the_start(facts: Facts) -> DataFrame:
    """The first segment keeps its name when it is compacted, so a log that starts later has lost one."""
    log_start = F.coalesce(lookup(facts.inventory.log_start), F.lit(0))
    first = neighbours(facts).where("number = 1").withColumn("log_start", log_start)
    return first.where("segment > log_start").select(
        "partition",
        "file",
        "position",
        F.lit(1).cast("long").alias("count"),
        F.format_string("the log starts at offset %d, and should at %d", "segment", "log_start").alias(
            "message"
        ),
    )


CHECK = Check(
    name="offset_gap",
    severity="error",
    about="Offsets are missing where compaction has not been: records were lost.",
    find=_find,
)
