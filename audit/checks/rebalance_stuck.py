# SPDX-License-Identifier: Apache-2.0
"""Groups that do not get out of a rebalance."""

from audit.checks.base import Check, differing

CHECK = Check(
    name="rebalance_stuck",
    severity="warning",
    about="A group was in a rebalance before the log was read, and still is: a member does not answer.",
    query=differing("stuck"),
)
