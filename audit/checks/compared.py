# SPDX-License-Identifier: Apache-2.0
"""Differences to a running cluster and to the compacted copy, where these were asked for."""

from typing import Final

from audit.checks.base import Check, differences_of

CHECKS: Final = (
    Check(
        name="compaction_differs",
        severity="error",
        about="A copy of the log, once compacted, says something else: compaction would lose state, or bring it back.",
        todo=(
            "Keep a copy of this partition's directory, set log.cleaner.enable=false, and report it: "
            "this is a bug."
        ),
        query=differences_of("compacted"),
    ),
    Check(
        name="state_differs",
        severity="error",
        about="What the running coordinators report is not what the log says: one of them has lost something.",
        todo=(
            "Audit again. If it stays so, restart the node, which then reads its state from the log; "
            "keep a copy of the log before that."
        ),
        query=differences_of("differs"),
    ),
    Check(
        name="rebalance_stuck",
        severity="warning",
        about="A group was in a rebalance before the log was read, and still is: a member does not answer.",
        todo=(
            "See the members with groupkeeper groups describe, and restart the one that does not answer. "
            "It is removed at the end of its rebalance timeout."
        ),
        query=differences_of("stuck"),
    ),
)
