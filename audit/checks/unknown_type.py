# SPDX-License-Identifier: Apache-2.0
"""Types of records that nobody knows."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="unknown_type",
    severity="warning",
    about="A record is of a type that Kafka 4.3 does not have.",
    query=sighted("unknown_type"),
)
