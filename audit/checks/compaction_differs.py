# SPDX-License-Identifier: Apache-2.0
"""The state of the log beside that of a copy that was compacted."""

from audit.checks.base import Check, differing

CHECK = Check(
    name="compaction_differs",
    severity="error",
    about="A copy of the log, once compacted, says something else: compaction would lose state, or bring it back.",
    query=differing("compacted"),
)
