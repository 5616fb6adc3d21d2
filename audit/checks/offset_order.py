# SPDX-License-Identifier: Apache-2.0
"""Offsets that go back."""

from audit.checks.base import Check, between, by_file, said, sighted
from audit.facts import Facts


def _query(facts: Facts) -> str:
    message = said("offset %s follows a file that starts at %s", "first_base_offset", "earlier_base_offset")
    across = between("first_base_offset < earlier_base_offset", message)
    return by_file(sighted("offset_order")(facts), across)


CHECK = Check(
    name="offset_order",
    severity="error",
    about="A batch starts at a lower offset than the one before it.",
    query=_query,
)
