# SPDX-License-Identifier: Apache-2.0
"""The checks that only report what the fold has seen while reading: one finding for each file."""

from typing import Final

from audit.checks.base import Check, sightings_query

CHECKS: Final = (
    Check(
        name="batch_crc",
        severity="error",
        about="A batch does not have the bytes that were written: its checksum does not match.",
        todo=(
            "Stop the node and run groupkeeper log repair --partition P, which says what "
            "can be kept; or restore a backup. Have the disk and the memory looked at."
        ),
        query=sightings_query("batch_crc"),
    ),
    Check(
        name="batch_damage",
        severity="error",
        about="Bytes in the log are not a batch, or the records of a batch cannot be read.",
        todo=(
            "Stop the node and run groupkeeper log repair --partition P, which says what "
            "can be kept; or restore a backup. Have the disk looked at."
        ),
        query=sightings_query("batch_damage"),
    ),
    Check(
        name="future_time",
        severity="warning",
        about="A record has a timestamp in the future: a clock was wrong, and it will expire late.",
        todo=(
            "See that NTP or chrony runs on the hosts that write; offsets that must not stay so long "
            "can be committed again."
        ),
        query=sightings_query("future_time"),
    ),
    Check(
        name="metadata_too_long",
        severity="warning",
        about="A commit's metadata is longer than offset.metadata.max.bytes allows.",
        todo="The limit was lowered, or another server wrote this: nothing is wrong with what is there.",
        query=sightings_query("metadata_too_long"),
    ),
    Check(
        name="undecodable",
        severity="error",
        about="The key or the value of a record cannot be decoded.",
        todo=(
            "See which program wrote the record (its client is in the message, if it is known), and "
            "report it if that was a Groupkeeper or a Kafka."
        ),
        query=sightings_query("undecodable"),
    ),
    Check(
        name="unknown_type",
        severity="warning",
        about="A record is of a type that Kafka 4.4 does not have.",
        todo="A newer Kafka has written this directory. It is kept, and not served.",
        query=sightings_query("unknown_type"),
    ),
)
