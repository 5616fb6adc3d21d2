# SPDX-License-Identifier: Apache-2.0
"""Keys and values that cannot be decoded."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="undecodable",
    severity="error",
    about="The key or the value of a record cannot be understood.",
    query=sighted("undecodable"),
)
