# SPDX-License-Identifier: Apache-2.0
"""Checksums of batches."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="batch_crc",
    severity="error",
    about="A batch does not have the bytes that were written: its checksum is another.",
    query=sighted("batch_crc"),
)
