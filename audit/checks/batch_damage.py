# SPDX-License-Identifier: Apache-2.0
"""Damage that is not one of the checksum."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="batch_damage",
    severity="error",
    about="Bytes in the log are no batch, or a batch holds no records that can be read.",
    query=sighted("batch_damage"),
)
