# SPDX-License-Identifier: Apache-2.0
"""Offsets that go back."""

from audit.checks.base import Check, said, sighted_or_between

CHECK = Check(
    name="offset_order",
    severity="error",
    about="A batch starts at a lower offset than the one before it.",
    query=lambda _: sighted_or_between(
        "offset_order",
        "first_base_offset < earlier_base_offset",
        said("offset %s follows a file that starts at %s", "first_base_offset", "earlier_base_offset"),
    ),
)
