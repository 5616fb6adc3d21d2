# SPDX-License-Identifier: Apache-2.0
"""Groups that are where they do not belong."""

from audit.checks.base import Check, sighted

CHECK = Check(
    name="wrong_partition",
    severity="error",
    about="A group has records in a partition where no coordinator looks for it.",
    query=sighted("wrong_partition"),
)
