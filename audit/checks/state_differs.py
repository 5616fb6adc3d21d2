# SPDX-License-Identifier: Apache-2.0
"""The state of the log beside that of the cluster."""

from audit.checks.base import Check, differing

CHECK = Check(
    name="state_differs",
    severity="error",
    about="What the running coordinators report is not what the log says: one of them has lost something.",
    query=differing("differs"),
)
