# SPDX-License-Identifier: Apache-2.0
"""Metadata above its limit."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="metadata_too_long",
    severity="warning",
    about="A commit's metadata is longer than offset.metadata.max.bytes allows.",
    query=sighted("metadata_too_long"),
)
