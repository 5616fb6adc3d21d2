# SPDX-License-Identifier: Apache-2.0
"""The checks for differences to a running cluster and to the compacted copy, if these were requested."""

from typing import Final

from audit.checks.base import Check, differences_query

CHECKS: Final = (
    Check(
        name="compaction_differs",
        severity="error",
        about=(
            "A copy of the log has other contents after compaction: compaction would lose state, or "
            "bring deleted state back."
        ),
        todo=(
            "Keep a copy of this partition's directory, set log.cleaner.enable=false, and report it: "
            "this is a bug."
        ),
        query=differences_query("compacted"),
    ),
    Check(
        name="state_differs",
        severity="error",
        about="The running coordinators do not report what the log holds: one of them has lost something.",
        todo=(
            "Audit again. If it stays so, restart the node, which then reads its state from the log; "
            "keep a copy of the log before that."
        ),
        query=differences_query("differs"),
    ),
    Check(
        name="rebalance_stuck",
        severity="warning",
        about="A group was in a rebalance before the log was read, and still is: a member does not answer.",
        todo=(
            "See the members with groupkeeper groups describe, and restart the one that does not answer. "
            "It is removed at the end of its rebalance timeout."
        ),
        query=differences_query("stuck"),
    ),
)
